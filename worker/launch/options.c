#include "worker/launch/options.h"

#include <float.h>
#include <stddef.h>
#include <string.h>

#include "common/number.h"
#include "common/step_range.h"

#define FIELD(name) offsetof(struct wlb_train_options, name)

static const struct wlb_option rows[] = {
	{WLB_OPTION(TEXT, "model", FIELD(model), "FILE|DIR",
                    "Hugging Face's config.json of a model whose family is known, or the folder that has it"),
         .required = true, .heading = "What to train"},
	{WLB_OPTION(LIST, "data-path", FIELD(data_words), "[WEIGHT] PREFIX",
                    "dataset PREFIX.bin and PREFIX.idx, as Megatron-LM has it; 'wlb data build' makes one; token ids "
                    "must be below the model's vocab_size; of several, WEIGHT before each is its share of the trained "
                    "tokens, and without weights all documents are trained once an epoch"),
         .required = true},
	{WLB_OPTION(LIST, NULL, FIELD(data_words), "[WEIGHT] PREFIX...", "more of --data-path")},
	{WLB_OPTION(TEXT, "split", FIELD(data_split), "TRAIN,VALID,TEST",
                    "train the first part of the sequences of each dataset, such as 99,1,0, and evaluate the second, "
                    "unless --eval-data-path is given; where no split is given all are trained")},
	{WLB_OPTION(INT64, "seq-length", FIELD(seq_length), "N",
                    "most tokens of a span of a document; longer documents are cut; at most the model's "
                    "max_position_embeddings"),
         .required = true, .min = 1, .max = 1 << 24},
	{WLB_OPTION(INT64, "global-batch-size", FIELD(global_batch_size), "N",
                    "a step trains at most N times --seq-length tokens, on all ranks together"),
         .required = true, .min = 1, .max = 1 << 24},
	{WLB_OPTION(LIST, "rampup-batch-size", FIELD(ramp_words), "START INCREMENT WINDOWS",
                    "begin with a global batch of START, which grows by INCREMENT up to --global-batch-size while the "
                    "first WINDOWS windows of --seq-length are trained, by the arithmetic of Megatron-LM; the learning "
                    "rate follows the steps"),
         .words = 3},
	{WLB_OPTION(INT64, "train-iters", FIELD(train_iters), "N", "steps to train"), .required = true, .min = 1,
         .max = WLB_OPTION_UNBOUNDED},
	{WLB_OPTION(INT64, "seed", FIELD(seed), "N", "seed of initial weights and document order"),
         .max = WLB_OPTION_UNBOUNDED, .initial = "1234"},
	{WLB_OPTION(TEXT, "init-from", FIELD(init_from), "DIR",
                    "take the initial weights from the folder of a published model, as Hugging Face has it: "
                    "model.safetensors, or the files that model.safetensors.index.json names, in F64, F32, BF16 or "
                    "F16; moments are zero and training begins at step 1; without effect where --load finds a "
                    "checkpoint")},
	{WLB_OPTION(REAL, "init-method-std", FIELD(init_method_std), "X",
                    "standard deviation of initial weights; projections that add to the residual stream have it "
                    "divided by the square root of twice the layers; 0: initializer_range of --model, 0.02 where it "
                    "has none"),
         .max = 10, .initial = "0"},
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
	{WLB_OPTION(
		 INT64, "skip-bad-steps", FIELD(skip_bad_steps), "N",
		 "skip a step whose loss or gradient norm is not finite, or whose norm exceeds --bad-norm-ratio: it "
		 "changes neither weights nor moments, and is recorded; after N in a row the next one ends the run; 0: "
		 "the first that is not finite does"),
         .max = 1e6, .initial = "0"},
	{WLB_OPTION(REAL, "bad-norm-ratio", FIELD(bad_norm_ratio), "X",
                    "with --skip-bad-steps: skip a step whose gradient norm is more than X times the median of the 64 "
                    "steps before, without the last; 0: none is skipped for that"),
         .max = 1e9, .initial = "0"},
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
	{WLB_OPTION(
		TEXT, "save-local", FIELD(save_local), "DIR",
		"a folder of each node, such as /dev/shm or one of a local disk, where each rank also keeps what it "
		"saves, with a copy on another node; after a fault --load then takes what is newest anywhere")},
	{WLB_OPTION(INT64, "save-local-interval", FIELD(save_local_interval), "N", "steps between these"), .min = 1,
         .max = WLB_OPTION_UNBOUNDED, .initial = "10"},
	{WLB_OPTION(INT64, "keep", FIELD(keep), "N", "newest checkpoints to keep; 0: all"), .max = 1e6, .initial = "0"},
	{WLB_OPTION(INT64, "keep-every", FIELD(keep_every), "N",
                    "keep also the checkpoints of multiples of step N; 0: none for that"),
         .max = WLB_OPTION_UNBOUNDED, .initial = "0"},
	{WLB_OPTION(
		TEXT, "load", FIELD(load), "DIR",
		"continue from the newest complete checkpoint there, on any number of ranks; where there is none "
		"the run starts from the beginning; the model "
		"must be that of the checkpoint; so must dataset, sequence length, global batch, its ramp, packing and "
		"seed, but "
		"for --new-phase, and learning rate, its schedule and AdamW's values, but for the two options below")},
	{WLB_OPTION(
		FLAG, "finetune", FIELD(finetune), NULL,
		"begin at step 1 with the weights of the newest checkpoint in --load, without its moments, schedule, "
		"data and options; once the run has a checkpoint in --save it goes on from that")},
	{WLB_OPTION(TEXT, "new-phase", FIELD(new_phase), "NAME,...",
                    "options that may differ from those of the checkpoint that --load continues from: seq-length, "
                    "global-batch-size, rampup-batch-size, data-path, packing, seed; weights, moments and the number "
                    "of the step go on, and "
                    "the documents begin anew, unless the batch alone has changed")},
	{WLB_OPTION(
		FLAG, "override-opt_param-scheduler", FIELD(override_hyper), NULL,
		"continue with the learning rate, schedule and AdamW's values of the command line where those of the "
		"checkpoint are others")},
	{WLB_OPTION(
		FLAG, "use-checkpoint-opt_param-scheduler", FIELD(use_checkpoint_hyper), NULL,
		"continue with the learning rate, schedule and AdamW's values of the checkpoint, whatever the command "
		"line says")},
	{WLB_OPTION(
		 TEXT, "eval-data-path", FIELD(eval_data_path), "PREFIX",
		 "dataset of documents that are not trained, on which the loss is computed every --eval-interval steps "
		 "and after the last one; each time on the same documents, whatever the layout; training is the same "
		 "to the last bit as without; where it is not given it is the second part of --split, if that is above "
		 "0"),
         .heading = "Evaluation"},
	{WLB_OPTION(INT64, "eval-interval", FIELD(eval_interval), "N",
                    "steps between evaluations; 0: only after the last step"),
         .max = WLB_OPTION_UNBOUNDED, .initial = "1000"},
	{WLB_OPTION(INT64, "eval-iters", FIELD(eval_iters), "N",
                    "batches of --global-batch-size that an evaluation takes"),
         .min = 1, .max = WLB_OPTION_UNBOUNDED, .initial = "100"},
	{WLB_OPTION(FLAG, "eval-at-start", FIELD(eval_at_start), NULL,
                    "evaluate also before the first step, and before that of a new phase")},
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
	{WLB_OPTION(INT, "zero-stage", FIELD(zero_stage), "N",
                    "what each rank that holds the same weights has a part of (ZeRO); 1: masters and moments; 2: the "
                    "gradients too, which are then reduced in every micro-batch: with one the result is the same to "
                    "the last bit, with several but for the order of sums; not with pp above 1 in --layout, and a "
                    "layout that is found has stage 1 there"),
         .min = 1, .max = 2, .initial = "1"},
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
                    "documents laid end to end and cut; dynamic: all documents of the batch, each on as many of the "
                    "cp x dp ranks as it needs; auto: that of the checkpoint, else dynamic where its step is "
                    "predicted to be shorter than that of balanced"),
         .choices = "balanced|greedy|fixed|plain|dynamic|auto", .initial = "balanced"},
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
	{WLB_OPTION(INT64, "tp-halves", FIELD(tp_halves), "N",
                    "micro-batches of at least N rows on a context-parallel rank are in two halves, so that "
                    "tensor-parallel communication of one half runs beside the products of the other; losses are as "
                    "without, but for the order of sums; 0: none"),
         .max = 1 << 26, .initial = "0"},
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
	{WLB_OPTION(TEXT, "tensorboard-dir", FIELD(tensorboard_dir), "DIR",
                    "a folder for TensorBoard: rank 0 writes the scalars of steps and evaluations there; training does "
                    "not wait for it")},
	{WLB_OPTION(
		TEXT, "trace-dir", FIELD(trace_dir), "DIR",
		"a folder that all nodes see: each rank writes there what it does in --trace-steps, for 'wlb trace'")},
	{WLB_OPTION(TEXT, "trace-steps", FIELD(trace_steps), "A[:B]",
                    "the step, or the first and the last of up to 1,000")},
};

const struct wlb_option_table wlb_train_option_table = {
	.command = "wlb-worker train",
	.about = "Trains a dense transformer; started by srun --mpi=pmix, by mpirun, or alone.",
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

/* Sets phase_changes. */
static int parse_phase(struct wlb_train_options *o, struct wlb_error *error)
{
	static const char *const names[] = {"seq-length", "global-batch-size", "data-path", "packing",
	                                    "seed",       "rampup-batch-size"};
	for (const char *text = o->new_phase; text != NULL && *text != '\0';) {
		size_t bytes = strcspn(text, ","), i = 0, count = sizeof(names) / sizeof(names[0]);
		while (i < count && (strlen(names[i]) != bytes || strncmp(names[i], text, bytes) != 0))
			i++;
		if (i == count)
			return wlb_fail(error,
			                "--new-phase '%.40s': it must be of seq-length, global-batch-size, data-path, "
			                "packing, seed and rampup-batch-size, separated by commas",
			                text);
		o->phase_changes |= 1 << i;
		text += bytes + (text[bytes] == ',');
	}
	return 0;
}

/* Where the weights come from. */
static int check_beginning(const struct wlb_train_options *o, struct wlb_error *error)
{
	if (o->finetune && (o->load == NULL || o->init_from != NULL || o->new_phase != NULL))
		return wlb_fail(error, "--finetune: it takes the weights of --load DIR, which must be given, and "
		                       "neither --init-from nor --new-phase");
	if (o->finetune && o->save != NULL && strcmp(o->save, o->load) == 0)
		return wlb_fail(error,
		                "--finetune: --save %.500s is the directory of --load too: name another, so that the "
		                "run does not mix its checkpoints with those that it begins with",
		                o->save);
	if (o->new_phase != NULL && o->load == NULL)
		return wlb_fail(error, "--new-phase %.100s: --load DIR must say what the run goes on from",
		                o->new_phase);
	return 0;
}

/* Sets the ramp of the batch: the last one that is given. */
static int take_ramp(struct wlb_train_options *o, struct wlb_error *error)
{
	static const char *const names[] = {"START", "INCREMENT", "WINDOWS"};
	int64_t *const fields[] = {&o->ramp.start, &o->ramp.increment, &o->ramp.windows};
	const int count = sizeof(names) / sizeof(names[0]), begin = o->ramp_words.count - count;
	int rc = 0;
	for (int i = 0; rc == 0 && begin >= 0 && i < count; i++)
		rc = wlb_number_parse(names[i], o->ramp_words.texts[begin + i], 1, INT64_MAX, fields[i], error);
	if (rc == 0)
		rc = wlb_batch_ramp_check(&o->ramp, o->global_batch_size, error);
	return rc < 0 ? wlb_fail_in(error, "--rampup-batch-size") : 0;
}

/* Sets the steps that are traced. */
static int parse_trace(struct wlb_train_options *o, struct wlb_error *error)
{
	enum { STEPS_MOST = 1000 };
	if (o->trace_dir == NULL && o->trace_steps == NULL)
		return 0;
	if (o->trace_dir == NULL || o->trace_steps == NULL)
		return wlb_fail(error, "%s: give both --trace-dir DIR and --trace-steps A:B, or none of them",
		                o->trace_dir != NULL ? "--trace-dir" : "--trace-steps");
	if (wlb_step_range_parse(o->trace_steps, STEPS_MOST, &o->traced, error) < 0)
		return wlb_fail_in(error, "--trace-steps");
	return 0;
}

/* Rules between options, once all are known. */
static int check_together(struct wlb_train_options *o, struct wlb_error *error)
{
	if (choose_dtypes(o, error) < 0 || parse_phase(o, error) < 0 || check_beginning(o, error) < 0 ||
	    take_ramp(o, error) < 0 || parse_trace(o, error) < 0)
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
	if (o->bad_norm_ratio > 0.0 && (o->bad_norm_ratio <= 1.0 || o->skip_bad_steps == 0))
		return wlb_fail(error, "--bad-norm-ratio %g: it must be above 1, and --skip-bad-steps N must be given",
		                o->bad_norm_ratio);
	if (o->save == NULL && o->save_interval > 0)
		return wlb_fail(error, "--save-interval %lld: --save DIR must say where checkpoints go",
		                (long long)o->save_interval);
	if (o->save == NULL && o->save_local != NULL)
		return wlb_fail(error,
		                "--save-local %.500s: --save DIR must say where checkpoints go that survive the job",
		                o->save_local);
	if (o->save == NULL && o->save_interval_s > 0.0)
		return wlb_fail(error, "--save-interval-s %g: --save DIR must say where checkpoints go",
		                o->save_interval_s);
	return 0;
}

/* Takes the datasets. The words themselves are those of the command line, and stay. */
static int take_data(char **argv, struct wlb_train_options *o, struct wlb_error *error)
{
	if (wlb_data_choice_read(argv + 1, &o->data_words, o->data_split, &o->data, error) < 0)
		return -1;
	o->data_path = o->data.parts[0].prefix;
	o->evaluates =
		o->eval_data_path != NULL || o->data.split.to[WLB_SPLIT_VALID] > o->data.split.from[WLB_SPLIT_VALID];
	return 0;
}

int wlb_train_options_parse(int argc, char **argv, struct wlb_train_options *options, struct wlb_error *error)
{
	*options = (struct wlb_train_options){0};
	int asked = wlb_options_parse(&wlb_train_option_table, argc, argv, options, error);
	if (asked == WLB_OPTIONS_READ && (take_data(argv, options, error) < 0 || check_together(options, error) < 0))
		asked = -1;
	wlb_options_free(&wlb_train_option_table, options);
	return asked;
}
