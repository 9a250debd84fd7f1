#include "planner/cli/plan/mine.h"

#include "planner/cli/plan/mine_model.h"

static int64_t value(const struct wlb_mine *mine, enum wlb_setting setting, int64_t otherwise)
{
	return wlb_trainer_words_value(&mine->words, setting, otherwise);
}

static int have(const struct wlb_mine *mine, enum wlb_setting setting)
{
	return wlb_trainer_words_have(&mine->words, setting);
}

/* Refuses a command that lacks a setting without a default. The recipes of NeMo have values of their own, which are not
 * in the command. */
static int need(const struct wlb_mine *mine, enum wlb_setting setting, struct wlb_error *error)
{
	if (have(mine, setting))
		return 0;
	return wlb_trainer_words_lack(&mine->words, setting,
	                              mine->words.of == WLB_WORDS_OF_NEMO
	                                      ? "add it, also where it is that of the recipe, which is not read"
	                                      : "add it; it has no default",
	                              error);
}

/* Refuses what an option of wlb plan has otherwise; `given` 0: it was not given. */
static int agree(const char *option, int64_t given, int64_t mine, struct wlb_error *error)
{
	if (given == 0 || given == mine)
		return 0;
	return wlb_fail(error, "%s %lld, but the command behind -- has %lld: leave one of them out", option,
	                (long long)given, (long long)mine);
}

/* Sets tp, cp, pp and dp. */
static int set_layout(struct wlb_mine *mine, const struct wlb_plan_input *input, struct wlb_error *error)
{
	struct wlb_search_fixed *f = &mine->fixed;
	if (mine->words.of == WLB_WORDS_OF_NEMO &&
	    (need(mine, WLB_SETTING_TP, error) < 0 || need(mine, WLB_SETTING_CP, error) < 0 ||
	     need(mine, WLB_SETTING_PP, error) < 0 || need(mine, WLB_SETTING_GLOBAL_BATCH, error) < 0))
		return -1;
	f->tp = (int)value(mine, WLB_SETTING_TP, 1);
	f->cp = (int)value(mine, WLB_SETTING_CP, 1);
	f->pp = (int)value(mine, WLB_SETTING_PP, 1);
	f->ep = (int)value(mine, WLB_SETTING_EP, 1);
	int64_t split = (int64_t)f->tp * f->cp * f->pp;
	if (input->gpus % split != 0)
		return wlb_fail(error,
		                "tp=%d,cp=%d,pp=%d: their product, %lld, must divide the %d usable GPUs; change one of "
		                "them or --nodes",
		                f->tp, f->cp, f->pp, (long long)split, input->gpus);
	f->dp = (int)(input->gpus / split);
	int64_t replicate = value(mine, WLB_SETTING_REPLICATE, 1),
		shard = value(mine, WLB_SETTING_SHARD, f->dp / replicate);
	if (replicate * shard != f->dp)
		return wlb_fail(error,
		                "%lld replicas x %lld shards: must be the %d GPUs divided by tp x cp x pp, %d; give -1 "
		                "shards, which takes what is left",
		                (long long)replicate, (long long)shard, input->gpus, f->dp);
	if (replicate > 1 && shard > 1)
		return wlb_fail(error,
		                "%lld replicas x %lld shards: weights that some replicas share are not planned; give 1 "
		                "replica or 1 shard",
		                (long long)replicate, (long long)shard);
	return 0;
}

/* Sets the windows of a micro-batch and of a step. */
static int set_batch(struct wlb_mine *mine, struct wlb_plan_request *request, struct wlb_error *error)
{
	struct wlb_search_fixed *f = &mine->fixed;
	int64_t local = value(mine, WLB_SETTING_LOCAL_BATCH, 8); /* of TorchTitan alone */
	int titan = mine->words.of == WLB_WORDS_OF_TORCHTITAN;
	mine->batch_given = request->global_batch > 0 || have(mine, WLB_SETTING_GLOBAL_BATCH);
	if (!titan && need(mine, WLB_SETTING_MICRO_BATCH, error) < 0)
		return -1;
	int64_t micro = titan && f->pp == 1 ? local : value(mine, WLB_SETTING_MICRO_BATCH, 1);
	int64_t batch = value(mine, WLB_SETTING_GLOBAL_BATCH,
	                      request->global_batch > 0 ? request->global_batch : (titan ? local : micro) * f->dp);
	if (agree("--global-batch-size", request->global_batch, batch, error) < 0)
		return -1;
	if (batch > WLB_PLAN_BATCH_MAX || batch % (micro * f->dp) != 0)
		return wlb_fail(
			error,
			"a batch of %lld windows: must be a multiple of dp x the windows of a micro-batch, %d x "
			"%lld, and at most %d; change one of them",
			(long long)batch, f->dp, (long long)micro, WLB_PLAN_BATCH_MAX);
	if (titan && f->pp > 1 && batch != local * f->dp)
		return wlb_fail(error,
		                "a batch of %lld windows: with a pipeline it must be dp x the local batch, %d x %lld; "
		                "several pipelines in a step are not planned",
		                (long long)batch, f->dp, (long long)local);
	f->micro_batch_windows = (int32_t)micro;
	request->global_batch = (int)batch;
	return 0;
}

static int set_window(struct wlb_mine *mine, struct wlb_plan_request *request, struct wlb_error *error)
{
	int64_t usual = mine->words.of == WLB_WORDS_OF_TORCHTITAN ? 2048 : 0;
	int64_t window = value(mine, WLB_SETTING_WINDOW, request->seq_length > 0 ? request->seq_length : usual);
	mine->window_given = request->seq_length > 0 || have(mine, WLB_SETTING_WINDOW);
	if (window == 0)
		return need(mine, WLB_SETTING_WINDOW, error);
	if (agree("--seq-length", request->seq_length, window, error) < 0)
		return -1;
	request->seq_length = (int)window;
	return 0;
}

/* Sets how many layers less than the others the first and the last stage have. */
static int set_end_stages(struct wlb_mine *mine, const struct wlb_model *model, struct wlb_error *error)
{
	struct wlb_search_fixed *f = &mine->fixed;
	int has_first = have(mine, WLB_SETTING_FIRST_LAYERS), has_last = have(mine, WLB_SETTING_LAST_LAYERS);
	int64_t first = value(mine, WLB_SETTING_FIRST_LAYERS, 0), last = value(mine, WLB_SETTING_LAST_LAYERS, 0);
	int64_t rest = model->num_hidden_layers - first - last, stages = f->pp - has_first - has_last;
	if (!has_first && !has_last)
		return 0;
	if (f->interleave > 1 || f->account_for_embedding || f->account_for_loss)
		return wlb_fail(error, "layers of the first or the last stage are planned without chunks, and without "
		                       "the embedding or the loss as a layer: leave one of them out");
	if (stages < 1 || rest <= 0 || rest % stages != 0)
		return wlb_fail(error,
		                "%lld layers are left for %lld stages: must be a positive multiple of them; change "
		                "the layers of the first or the last stage",
		                (long long)rest, (long long)stages);
	if (first > rest / stages || last > rest / stages)
		return wlb_fail(error,
		                "the first stage has %lld layers, the last %lld: must have at most the %lld of the "
		                "others",
		                (long long)first, (long long)last, (long long)(rest / stages));
	f->account_for_embedding = has_first ? (int)(rest / stages - first) : 0;
	f->account_for_loss = has_last ? (int)(rest / stages - last) : 0;
	return 0;
}

/* Sets the chunks of layers on a stage, by their number or by the layers of one. */
static int set_interleave(struct wlb_mine *mine, const struct wlb_plan_request *request, const struct wlb_model *model,
                          struct wlb_error *error)
{
	struct wlb_search_fixed *f = &mine->fixed;
	if (mine->words.of == WLB_WORDS_OF_NEMO && f->pp > 1 && need(mine, WLB_SETTING_INTERLEAVE, error) < 0)
		return -1;
	f->account_for_embedding = (int)value(mine, WLB_SETTING_EMBEDDING, 0);
	f->account_for_loss = (int)value(mine, WLB_SETTING_LOSS, 0);
	int64_t layers = model->num_hidden_layers + f->account_for_embedding + f->account_for_loss;
	int64_t of_chunk = value(mine, WLB_SETTING_CHUNK_LAYERS, 0);
	int64_t chunks = value(mine, WLB_SETTING_INTERLEAVE, 1 + value(mine, WLB_SETTING_SCHEDULE, 0));
	if (of_chunk > 0 && layers % (f->pp * of_chunk) != 0)
		return wlb_fail(error, "%lld layers: must be a multiple of pp x the layers of a chunk, %d x %lld",
		                (long long)layers, f->pp, (long long)of_chunk);
	if (of_chunk > 0)
		chunks = layers / (f->pp * of_chunk);
	int64_t micro_batches = request->global_batch / ((int64_t)f->dp * f->micro_batch_windows);
	if (chunks > 1 && micro_batches % f->pp != 0)
		return wlb_fail(
			error,
			"%lld micro-batches for each replica: with %lld chunks on a stage they must be a multiple "
			"of pp, %d; change the batch or leave the chunks out",
			(long long)micro_batches, (long long)chunks, f->pp);
	f->interleave = f->pp > 1 ? (int32_t)chunks : 1;
	return set_end_stages(mine, model, error);
}

/* Sets what is recomputed. Selective recomputation of Megatron-LM and NeMo is of the modules that are given, or of the
 * core of attention, whose kernel runs again even where it is fused (core/transformer/attention.py). TorchTitan's is
 * taken as some of the layers: every second one for "op", which recomputes every second product. */
static void set_recompute(struct wlb_mine *mine, const struct wlb_model *model)
{
	struct wlb_search_fixed *f = &mine->fixed;
	int titan = mine->words.of == WLB_WORDS_OF_TORCHTITAN;
	int64_t chunk = model->num_hidden_layers / ((int64_t)f->pp * f->interleave);
	f->recompute = (int)value(mine, WLB_SETTING_RECOMPUTE, titan ? WLB_RECOMPUTE_SELECTIVE : WLB_RECOMPUTE_NONE);
	if (f->recompute == WLB_RECOMPUTE_FULL && value(mine, WLB_SETTING_RECOMPUTE_BLOCK, 0)) {
		f->recompute_layers = (int32_t)value(mine, WLB_SETTING_RECOMPUTE_LAYERS, 1);
	} else if (f->recompute == WLB_RECOMPUTE_SELECTIVE && !titan) {
		f->recompute = (int)value(mine, WLB_SETTING_RECOMPUTE_MODULES, WLB_RECOMPUTE_CORE_ATTN);
	} else if (f->recompute == WLB_RECOMPUTE_SELECTIVE) {
		int64_t every = value(mine, WLB_SETTING_RECOMPUTE_EVERY, 0);
		f->recompute_layers = (int32_t)(chunk / (every > 0 ? every : 2));
		f->recompute = f->recompute_layers > 0 ? WLB_RECOMPUTE_FULL : WLB_RECOMPUTE_NONE;
	}
	if (f->recompute_layers >= chunk)
		f->recompute_layers = 0; /* all */
}

/* The stage of ZeRO. */
static int sharding_of(const struct wlb_mine *mine, int zero_stage)
{
	int64_t reshard = value(mine, WLB_SETTING_RESHARD, 0);
	switch (mine->words.of) {
	case WLB_WORDS_OF_MEGATRON:
		if (value(mine, WLB_SETTING_FSDP, 0))
			return (int)value(mine, WLB_SETTING_SHARDING, 3);
		return (int)value(mine, WLB_SETTING_OPTIMIZER_SHARDED, 0);
	case WLB_WORDS_OF_TORCHTITAN:
		return value(mine, WLB_SETTING_REPLICATE, 1) > 1 ? 0 : reshard == 2 ? 2 : 3;
	case WLB_WORDS_OF_NEMO:
		break;
	}
	return (int)value(mine, WLB_SETTING_SHARDING, value(mine, WLB_SETTING_OPTIMIZER_SHARDED, zero_stage));
}

/* Sets the types of gradients and products, which the best plan keeps. */
static int set_types(const struct wlb_mine *mine, struct wlb_plan_input *input, struct wlb_error *error)
{
	if (have(mine, WLB_SETTING_BFLOAT16_GRADIENTS))
		input->cost.gradient_bytes = value(mine, WLB_SETTING_BFLOAT16_GRADIENTS, 0) ? 2 : 4;
	if (!have(mine, WLB_SETTING_FP8))
		return 0;
	input->cost.fp8 = (enum wlb_fp8)value(mine, WLB_SETTING_FP8_RECIPE, WLB_FP8_DELAYED);
	input->cost.fp8_parameters = (int)value(mine, WLB_SETTING_FP8_PARAMETERS, 0);
	return wlb_machine_fp8_check(&input->machine, input->cost.fp8, error);
}

/* Sets what overlaps. Megatron-LM overlaps only what is asked for, but for sends; of the others the trainer's file has
 * the settings that their recipes have. */
static void set_cost(struct wlb_mine *mine, const struct wlb_plan_request *request, struct wlb_plan_input *input)
{
	const struct wlb_cost_options *file = &input->cost;
	int asked = mine->words.of == WLB_WORDS_OF_MEGATRON;
	mine->cost = *file;
	mine->cost.overlap_gradients =
		(int)value(mine, WLB_SETTING_OVERLAP_GRADIENTS, asked ? 0 : file->overlap_gradients);
	mine->cost.overlap_parameters =
		(int)value(mine, WLB_SETTING_OVERLAP_PARAMETERS, asked ? 0 : file->overlap_parameters);
	mine->cost.overlap_pp = (int)value(mine, WLB_SETTING_OVERLAP_PP, file->overlap_pp);
	if (!value(mine, WLB_SETTING_OVERLAP_TP, !asked))
		mine->cost.tp_overlap = (struct wlb_overlap){0.0, 0.0};
	mine->cost.whole_rows = !value(mine, WLB_SETTING_SEQUENCE_PARALLEL, asked ? 0 : !file->whole_rows);
	mine->zero_stage = sharding_of(mine, request->zero_stage);
}

static int check_held(const struct wlb_search_fixed *held, const struct wlb_search_fixed *f, struct wlb_error *error)
{
	const struct {
		const char *option;
		int64_t given, mine;
	} values[] = {{"--tp", held->tp, f->tp},
	              {"--cp", held->cp, f->cp},
	              {"--pp", held->pp, f->pp},
	              {"--dp", held->dp, f->dp},
	              {"--ep", held->ep, f->ep},
	              {"--interleave", held->interleave, f->interleave},
	              {"--micro-batch-size", held->micro_batch_windows, f->micro_batch_windows}};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (agree(values[i].option, values[i].given, values[i].mine, error) < 0)
			return -1;
	return 0;
}

int wlb_mine_read(char *const *words, const struct wlb_search_fixed *held, struct wlb_plan_request *request,
                  struct wlb_plan_input *input, struct wlb_mine *mine, struct wlb_error *error)
{
	int of = wlb_words_of_trainer(input->trainer.name);
	*mine = (struct wlb_mine){.fixed = wlb_plan_nothing_fixed()};
	if (of < 0)
		return wlb_fail(error,
		                "--compare: the options of %s are not known; --trainer must be megatron, nemo or "
		                "torchtitan, or a file whose name begins so",
		                input->trainer.name);
	if (wlb_trainer_words_read(words, (enum wlb_words_of)of, &mine->words, error) < 0)
		return wlb_fail_in(error, "--compare");
	if (agree("--nodes", request->nodes, value(mine, WLB_SETTING_NODES, request->nodes), error) < 0 ||
	    agree("--gpus-per-node", input->machine.gpus_per_node,
	          value(mine, WLB_SETTING_GPUS_PER_NODE, input->machine.gpus_per_node), error) < 0 ||
	    set_window(mine, request, error) < 0 || set_layout(mine, input, error) < 0 ||
	    set_batch(mine, request, error) < 0 || wlb_mine_model(&mine->words, request, &input->model, error) < 0 ||
	    set_interleave(mine, request, &input->model, error) < 0 || check_held(held, &mine->fixed, error) < 0 ||
	    set_types(mine, input, error) < 0)
		return -1;
	set_recompute(mine, &input->model);
	set_cost(mine, request, input);
	request->zero_stage = mine->zero_stage > request->zero_stage ? mine->zero_stage : request->zero_stage;
	return 0;
}
