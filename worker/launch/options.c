#include "worker/launch/options.h"

#include <float.h>
#include <stddef.h>

#define FIELD(name) offsetof(struct wlb_train_options, name)

static const struct wlb_option rows[] = {
	{WLB_OPTION(TEXT, "model", FIELD(model), "FILE", "Hugging Face's config.json of a Llama model"),
         .required = true, .heading = "What to train"},
	{WLB_OPTION(TEXT, "data-path", FIELD(data_path), "PREFIX",
                    "dataset PREFIX.bin and PREFIX.idx, as Megatron-LM has it; 'wlb data build' makes one; token ids "
                    "must be below the model's vocab_size"),
         .required = true},
	{WLB_OPTION(INT64, "seq-length", FIELD(seq_length), "N",
                    "most tokens of a span of a document; longer documents are cut; at most the model's "
                    "max_position_embeddings"),
         .required = true, .min = 1, .max = 1 << 24},
	{WLB_OPTION(INT64, "global-batch-size", FIELD(global_batch_size), "N",
                    "a step trains at most N times --seq-length tokens, on all ranks together"),
         .required = true, .min = 1, .max = 1 << 24},
	{WLB_OPTION(INT64, "train-iters", FIELD(train_iters), "N", "steps to train"), .required = true, .min = 1,
         .max = WLB_OPTION_UNBOUNDED},
	{WLB_OPTION(INT64, "seed", FIELD(seed), "N", "seed of initial weights and document order"),
         .max = WLB_OPTION_UNBOUNDED, .initial = "1234"},
	{WLB_OPTION(REAL, "init-method-std", FIELD(init_method_std), "X",
                    "standard deviation of initial weights; projections that add to the residual stream have it "
                    "divided by the square root of twice the layers"),
         .max = 10, .initial = "0.02"},
	{WLB_OPTION(REAL, "lr", FIELD(hyper.lr), "X", "highest learning rate"), .required = true, .min = DBL_MIN,
         .max = 1e3, .rule = "a number above 0, such as 3e-4", .heading = "Learning rate"},
	{WLB_OPTION(REAL, "min-lr", FIELD(hyper.min_lr), "X", "learning rate after decay"), .max = 1e3, .initial = "0"},
	{WLB_OPTION(INT64, "lr-warmup-iters", FIELD(hyper.lr_warmup_iters), "N", "steps of linear warm-up"),
         .max = WLB_OPTION_UNBOUNDED, .initial = "0"},
	{WLB_OPTION(INT64, "lr-decay-iters", FIELD(hyper.lr_decay_iters), "N",
                    "step at which --min-lr is reached; 0: --train-iters"),
         .max = WLB_OPTION_UNBOUNDED, .initial = "0"},
	{WLB_OPTION(CHOICE, "lr-decay-style", FIELD(hyper.lr_decay_style), NULL, "how the learning rate falls"),
         .choices = "constant|linear|cosine", .initial = "cosine"},
	{WLB_OPTION(REAL, "weight-decay", FIELD(hyper.weight_decay), "X",
                    "decoupled weight decay of matrices; norms have none"),
         .max = 1e3, .initial = "0.01", .heading = "Optimizer: AdamW"},
	{WLB_OPTION(REAL, "adam-beta1", FIELD(hyper.adam_beta1), "X", "decay of the first moment"),
         .max = 1 - DBL_EPSILON, .rule = "a number from 0 to below 1", .initial = "0.9"},
	{WLB_OPTION(REAL, "adam-beta2", FIELD(hyper.adam_beta2), "X", "decay of the second moment"),
         .max = 1 - DBL_EPSILON, .rule = "a number from 0 to below 1", .initial = "0.999"},
	{WLB_OPTION(REAL, "adam-eps", FIELD(hyper.adam_eps), "X", "epsilon of AdamW, which is computed in float32"),
         .min = FLT_MIN, .max = 1, .rule = "a number from 1.2e-38 to 1", .initial = "1e-8"},
	{WLB_OPTION(REAL, "clip-grad", FIELD(hyper.clip_grad), "X",
                    "largest global norm of the gradients; 0: no clipping"),
         .max = 1e9, .initial = "1.0"},
	{WLB_OPTION(TEXT, "save", FIELD(save), "DIR",
                    "where checkpoints go: one every --save-interval steps, and one after the last step"),
         .heading = "Checkpoints"},
	{WLB_OPTION(INT64, "save-interval", FIELD(save_interval), "N",
                    "steps between checkpoints; 0: only after the last step"),
         .max = WLB_OPTION_UNBOUNDED, .initial = "0"},
	{WLB_OPTION(REAL, "save-interval-s", FIELD(save_interval_s), "SECONDS",
                    "time between checkpoints, which are of the first step that ends after it; 0: none for that"),
         .max = 1e9, .initial = "0"},
	{WLB_OPTION(CHOICE, "save-when-busy", FIELD(save_when_busy), NULL,
                    "what happens to a checkpoint that is due while the one before is still being written: wait: "
                    "training waits for that; skip: it is left out, and training goes on"),
         .choices = "wait|skip", .initial = "wait"},
	{WLB_OPTION(INT64, "keep", FIELD(keep), "N", "newest checkpoints to keep; 0: all"), .max = 1e6, .initial = "0"},
	{WLB_OPTION(INT64, "keep-every", FIELD(keep_every), "N",
                    "keep also the checkpoints of multiples of step N; 0: none for that"),
         .max = WLB_OPTION_UNBOUNDED, .initial = "0"},
	{WLB_OPTION(
		TEXT, "load", FIELD(load), "DIR",
		"continue from the newest complete checkpoint there, on any number of ranks; where there is none "
		"the run starts from the beginning; model, dataset, sequence length, global batch, packing and seed "
		"must be those of the checkpoint, and, unless one of the next two options is given, learning rate, its "
		"schedule and AdamW's values too")},
	{WLB_OPTION(
		FLAG, "override-opt_param-scheduler", FIELD(override_hyper), NULL,
		"continue with the learning rate, schedule and AdamW's values of the command line where those of the "
		"checkpoint are others")},
	{WLB_OPTION(
		FLAG, "use-checkpoint-opt_param-scheduler", FIELD(use_checkpoint_hyper), NULL,
		"continue with the learning rate, schedule and AdamW's values of the checkpoint, whatever the command "
		"line says")},
	{WLB_OPTION(CHOICE, "dtype", FIELD(dtype), NULL,
                    "element type of the weights in use and of activations; with bfloat16, master weights, moments and "
                    "statistics are float32; a CPU computes in float32 and float64, a GPU in bfloat16 and float32; "
                    "auto: bfloat16 on a GPU, float32 on a CPU"),
         .choices = "float32|float64|bfloat16|auto", .initial = "auto", .heading = "How to compute"},
	{WLB_OPTION(FLAG, "bf16", FIELD(bf16), NULL, "the same as --dtype bfloat16")},
	{WLB_OPTION(CHOICE, "main-grads-dtype", FIELD(main_grads), NULL,
                    "element type in which gradients are summed over micro-batches and ranks; bf16 needs bfloat16 "
                    "weights, takes half the memory and the time of their reduction, and loses precision"),
         .choices = "fp32|bf16", .initial = "fp32"},
	{WLB_OPTION(CHOICE, "device", FIELD(device), NULL, "what computes"), .choices = "cpu|cuda", .initial = "cpu"},
	{WLB_OPTION(INT64, "threads", FIELD(threads), "N",
                    "threads of a rank; 0: the CPUs that it may use, divided by the ranks of its node"),
         .max = 1024, .initial = "0"},
	{WLB_OPTION(
		 TEXT, "layout", FIELD(layout), "auto|off|tp=T,cp=C,pp=P[,dp=D]",
		 "how ranks share the work (default: WLB_TP, WLB_CP, WLB_PP and WLB_DP, else WLB_LAYOUT, else auto)"),
         .heading = "How ranks share the work"},
	{WLB_OPTION(TEXT, "machine", FIELD(machine), "NAME|FILE",
                    "machine whose speeds auto predicts step times from, and which decide which documents of a step a "
                    "rank takes: a file that 'wlb calibrate' wrote, or a name as 'wlb plan --machine' takes; which "
                    "documents a step trains does not depend on it (default: WLB_MACHINE, else the one of the GPUs' "
                    "type, else machine = of wlb.conf, else CPU)")},
	{WLB_OPTION(CHOICE, "packing", FIELD(packing), NULL,
                    "how documents become micro-batches; balanced: of equal work, for which a document may wait for a "
                    "few steps; greedy: the packing of WLB-LLM; fixed: of equal length, documents cut; plain: "
                    "documents laid end to end and cut"),
         .choices = "balanced|greedy|fixed|plain", .initial = "balanced"},
	{WLB_OPTION(INT64, "micro-batch-size", FIELD(micro_batch_size), "N",
                    "a micro-batch is for N times --seq-length tokens; balanced and greedy packing may fill it to 1.25 "
                    "times that; 0: as auto finds, or 1 where the layout is given"),
         .max = 1 << 24, .initial = "0"},
	{WLB_OPTION(INT64, "max-tokens-per-micro-batch", FIELD(max_tokens), "N",
                    "most tokens of a micro-batch on all its context-parallel ranks, at least --seq-length, and so how "
                    "much memory activations take; 0: as --micro-batch-size and packing give"),
         .max = 1 << 26, .initial = "0"},
	{WLB_OPTION(CHOICE, "cp-sharding", FIELD(cp_sharding), NULL,
                    "how context-parallel ranks share a micro-batch; adaptive: of the two the one that is faster"),
         .choices = "per-sequence|per-document|adaptive", .initial = "adaptive"},
	{WLB_OPTION(INT64, "num-virtual-stages-per-pipeline-rank", FIELD(virtual_stages), "N",
                    "chunks of layers on each pipeline stage; above 1 the schedule is interleaved; 0: as auto finds, "
                    "or 1 where "
                    "the layout is given"),
         .max = 1 << 12, .initial = "0"},
	{WLB_OPTION(FLAG, "account-for-embedding-in-pipeline-split", FIELD(account_for_embedding), NULL,
                    "count the embedding as a layer where layers are divided among pipeline stages")},
	{WLB_OPTION(FLAG, "account-for-loss-in-pipeline-split", FIELD(account_for_loss), NULL,
                    "count the output head with its loss as a layer there")},
	{WLB_OPTION(CHOICE, "head-stages", FIELD(head_stages), NULL,
                    "pipeline stages that compute the output head with its loss; all: each an equal share of the rows "
                    "of every micro-batch, for which each holds the head's weights and one more micro-batch is in "
                    "flight; auto: all where that is predicted to be faster and the memory suffices"),
         .choices = "last|all|auto", .initial = "auto"},
	{WLB_OPTION(CHOICE, "recompute-granularity", FIELD(recompute), NULL,
                    "what is computed again in the backward pass instead of being kept; selective: norms and "
                    "gathered keys; full: whole layers, from their input; the result is the same to the last bit; "
                    "auto: as the "
                    "layout auto finds, or none where the layout is given"),
         .choices = "none|selective|full|auto", .initial = "auto"},
	{WLB_OPTION(INT, "recompute-num-layers", FIELD(recompute_layers), "N",
                    "with --recompute-granularity full: the first N layers of each chunk, and the others as with "
                    "selective; 0: all"),
         .max = 1 << 12, .initial = "0"},
	{WLB_OPTION(
		 CHOICE, "transport", FIELD(transport), NULL,
		 "what carries the messages of GPUs; NCCL needs a separate GPU for each rank; mpi copies them through "
		 "host memory; auto: nccl where every rank can use it, else mpi, with a line that says why"),
         .choices = "auto|nccl|mpi", .initial = "auto"},
	{WLB_OPTION(REAL, "distributed-timeout-minutes", FIELD(timeout_minutes), "X",
                    "longest a rank waits in one collective; then it names the collective and ends the run"),
         .min = 0.001, .max = 1e6, .initial = "10"},
	{WLB_OPTION(
		 REAL, "storage-timeout-minutes", FIELD(storage_timeout_minutes), "X",
		 "longest that a call on a file makes no progress; then the rank names the file and ends the run; a "
		 "checkpoint, or a step's documents, that take longer but make progress are waited for; below "
		 "--distributed-timeout-minutes, so that the ranks that wait do not end the run first; 0: half of it"),
         .max = 1e6, .initial = "0"},
	{WLB_OPTION(INT64, "sdc-check-interval", FIELD(sdc_check_interval), "N",
                    "steps between checks for silent data corruption (SDC): the forward and backward pass of one "
                    "micro-batch, computed on every replica and compared bit for bit; where replicas cannot be "
                    "compared, computed twice on its own rank; losses and weights stay the same; 0: none"),
         .max = WLB_OPTION_UNBOUNDED, .initial = "0"},
	{WLB_OPTION(INT64, "log-interval", FIELD(log_interval), "N", "steps between lines on standard output"),
         .min = 1, .max = WLB_OPTION_UNBOUNDED, .initial = "10", .heading = "Output"},
	{WLB_OPTION(TEXT, "metrics-file", FIELD(metrics_file), "FILE", "one JSON object a step is appended")},
};

const struct wlb_option_table wlb_train_option_table = {
	.command = "wlb-worker train",
	.about = "Trains a Llama-family transformer; started by srun --mpi=pmix, by mpirun, or alone.",
	.options = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
};

int wlb_dtype_choose(enum wlb_device_kind device, const char *option, int *dtype, struct wlb_error *error)
{
	int is_cuda = device == WLB_DEVICE_CUDA;
	if (*dtype == WLB_DTYPE_AUTO)
		*dtype = is_cuda ? WLB_BFLOAT16 : WLB_FLOAT32;
	if (!is_cuda && *dtype == WLB_BFLOAT16)
		return wlb_fail(error,
		                "%s: a CPU computes in float32 and float64; use --device cuda, or --dtype float32",
		                option);
	if (is_cuda && *dtype == WLB_FLOAT64)
		return wlb_fail(error, "--dtype float64: a GPU computes in bfloat16 and float32; use --device cpu, or "
		                       "--dtype float32");
	return 0;
}

/* Sets the element type, and checks that the device computes in it and that gradients can have theirs. */
static int choose_dtypes(struct wlb_train_options *o, struct wlb_error *error)
{
	if (o->bf16 && o->dtype != WLB_DTYPE_AUTO && o->dtype != WLB_BFLOAT16)
		return wlb_fail(error, "--bf16 and --dtype %s: give one of them",
		                o->dtype == WLB_FLOAT64 ? "float64" : "float32");
	if (o->bf16)
		o->dtype = WLB_BFLOAT16;
	if (wlb_dtype_choose((enum wlb_device_kind)o->device, o->bf16 ? "--bf16" : "--dtype bfloat16", &o->dtype,
	                     error) < 0)
		return -1;
	if (o->main_grads == WLB_MAIN_GRADS_BF16 && o->dtype != WLB_BFLOAT16)
		return wlb_fail(error, "--main-grads-dtype bf16: it needs --bf16; the weights are %s",
		                o->dtype == WLB_FLOAT64 ? "float64" : "float32");
	return 0;
}

/* Rules between options, once all are known. */
static int check_together(struct wlb_train_options *o, struct wlb_error *error)
{
	if (choose_dtypes(o, error) < 0)
		return -1;
	if (o->hyper.min_lr > o->hyper.lr)
		return wlb_fail(error, "--min-lr %g: it must not exceed --lr %g", o->hyper.min_lr, o->hyper.lr);
	if (o->hyper.lr_decay_iters == 0)
		o->hyper.lr_decay_iters = o->train_iters;
	if (o->hyper.lr_warmup_iters >= o->hyper.lr_decay_iters && o->hyper.lr_warmup_iters > 0)
		return wlb_fail(error,
		                "--lr-warmup-iters %lld: it must be below --lr-decay-iters %lld (or --train-iters)",
		                (long long)o->hyper.lr_warmup_iters, (long long)o->hyper.lr_decay_iters);
	if (o->override_hyper && o->use_checkpoint_hyper)
		return wlb_fail(error, "--override-opt_param-scheduler and --use-checkpoint-opt_param-scheduler: give "
		                       "one of them");
	if (o->recompute_layers > 0 && o->recompute != WLB_RECOMPUTE_FULL)
		return wlb_fail(error, "--recompute-num-layers %d: it needs --recompute-granularity full",
		                o->recompute_layers);
	if (o->max_tokens != 0 && o->max_tokens < o->seq_length)
		return wlb_fail(error, "--max-tokens-per-micro-batch %lld: it must be at least --seq-length %lld",
		                (long long)o->max_tokens, (long long)o->seq_length);
	if (o->storage_timeout_minutes == 0.0)
		o->storage_timeout_minutes = o->timeout_minutes / 2.0;
	if (o->storage_timeout_minutes >= o->timeout_minutes)
		return wlb_fail(error,
		                "--storage-timeout-minutes %g: it must be below --distributed-timeout-minutes %g",
		                o->storage_timeout_minutes, o->timeout_minutes);
	if (o->save == NULL && o->save_interval > 0)
		return wlb_fail(error, "--save-interval %lld: --save DIR must say where checkpoints go",
		                (long long)o->save_interval);
	if (o->save == NULL && o->save_interval_s > 0.0)
		return wlb_fail(error, "--save-interval-s %g: --save DIR must say where checkpoints go",
		                o->save_interval_s);
	return 0;
}

int wlb_train_options_parse(int argc, char **argv, struct wlb_train_options *options, struct wlb_error *error)
{
	*options = (struct wlb_train_options){0};
	int asked = wlb_options_parse(&wlb_train_option_table, argc, argv, options, error);
	return asked == WLB_OPTIONS_READ ? check_together(options, error) : asked;
}
