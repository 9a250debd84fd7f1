#include "planner/cli/sim/run.h"

#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "planner/samples.h"

/* Steps before the counted steps: in the first steps no documents have waited yet, and a document waits for up to 32
 * steps by default. */
enum { SKIPPED_STEPS = 50 };

static const struct wlb_sim_strategy strategies[] = {
	{"plain", "concatenated and cut; per-sequence shards", WLB_STRATEGY_PLAIN, WLB_SHARDING_SEQUENCE,
         WLB_SIM_SHARDED},
	{"fixed", "equal lengths; per-sequence shards", WLB_STRATEGY_FIXED, WLB_SHARDING_SEQUENCE, WLB_SIM_SHARDED},
	{"greedy", "two queues, as published; adaptive shards", WLB_STRATEGY_GREEDY, WLB_SHARDING_ADAPTIVE,
         WLB_SIM_SHARDED},
	{"balanced", "exchange and priced delay; adaptive shards", WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE,
         WLB_SIM_SHARDED},
	{"dynamic", "the same; as many context ranks as a document needs", WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE,
         WLB_SIM_DYNAMIC},
	{"hybrid", "the same; context ranks by length, Megatron Core's rule", WLB_STRATEGY_BALANCED,
         WLB_SHARDING_ADAPTIVE, WLB_SIM_HYBRID},
	{"servers", "equal lengths; attention servers, as DistCA", WLB_STRATEGY_FIXED, WLB_SHARDING_SEQUENCE,
         WLB_SIM_SERVERS},
};

/* What wlb-worker does with --packing dynamic, where the simulated trainer is that. */
static const struct wlb_sim_strategy worker_dynamic = {"dynamic",
                                                       "no delay; as many of the cp x dp ranks as a document needs",
                                                       WLB_STRATEGY_DYNAMIC, WLB_SHARDING_ADAPTIVE, WLB_SIM_DYNAMIC};

const struct wlb_sim_strategy *wlb_sim_strategy_find(const char *name)
{
	for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); i++)
		if (strcmp(strategies[i].name, name) == 0)
			return &strategies[i];
	return NULL;
}

/* Adds a step's share to the means over `steps` steps. */
static void add_time(struct wlb_sim_time *mean, const struct wlb_sim_time *time, int steps)
{
	/* All members are doubles. */
	double *to = (double *)mean;
	const double *from = (const double *)time;
	for (size_t i = 0; i < sizeof(*mean) / sizeof(*to); i++)
		to[i] += from[i] / steps;
}

/* Keeps the bars of one replica. */
static int keep_bars(struct wlb_sim_run *run, const struct wlb_sim *sim, int32_t replica, struct wlb_error *error)
{
	size_t count;
	const struct wlb_sim_event *events = wlb_sim_timeline(sim, &count);
	run->bars = calloc(count + 1, sizeof(*run->bars));
	if (run->bars == NULL)
		return wlb_fail(error, "out of memory for %zu bars of a timeline", count);
	run->bar_count = 0;
	for (size_t i = 0; i < count; i++)
		if (events[i].replica == replica)
			run->bars[run->bar_count++] = events[i];
	return 0;
}

/* Sets the rate as if the steps had done the work of the documents that arrived in them, and no other: a strategy gains
 * nothing by holding long documents back beyond the last step, nor loses by those that it held before the first. */
static void set_rate(const struct wlb_samples *samples, double seconds, struct wlb_sim_run *run)
{
	double work = 0.0;
	for (size_t i = 0; i < samples->count; i++)
		for (int32_t b = 0; b < samples->steps[i].micro_batches; b++)
			work += samples->steps[i].loads[b].work;
	run->held_back_share = samples->more_held_work / work;
	run->tokens_per_s = (double)samples->arrived_tokens / (seconds * (1.0 + run->held_back_share));
}

static int simulate(struct wlb_sim *sim, const struct wlb_samples *samples, struct wlb_sim_run *run,
                    struct wlb_error *error)
{
	struct wlb_sim_result result = {0};
	double seconds = 0.0;
	int steps = (int)samples->count;
	for (int i = 0; i < steps; i++) {
		if (wlb_sim_step(sim, &samples->steps[i], &result, error) < 0)
			return -1;
		add_time(&run->time, &result.time, steps);
		seconds += result.time.step_s;
		run->utilization += result.utilization * result.time.step_s;
		run->imbalance += wlb_step_imbalance(&samples->steps[i]) / steps;
	}
	set_rate(samples, seconds, run);
	run->utilization /= seconds;
	return keep_bars(run, sim, result.worst_replica, error);
}

/* Sets the memory of the stage that needs most, for the longest micro-batch of the samples. */
static void set_memory(const struct wlb_plan_input *input, const struct wlb_sim_options *options,
                       const struct wlb_samples *samples, struct wlb_sim_run *run)
{
	int64_t longest = 0;
	for (size_t i = 0; i < samples->count; i++) {
		const struct wlb_step *step = &samples->steps[i];
		/* wlb-worker has memory for the most that documents of their own ranks may have. */
		for (int32_t b = 0; b < step->micro_batches && options->plan.dynamic_cp == 0; b++)
			if (step->loads[b].tokens > run->micro_batch_tokens)
				run->micro_batch_tokens = step->loads[b].tokens;
		for (size_t k = 0; k < step->count; k++)
			if (step->spans[k].span.tokens > longest)
				longest = step->spans[k].span.tokens;
	}
	for (int32_t stage = 0; stage < options->plan.layout.pp; stage++) {
		struct wlb_memory memory = wlb_memory_stage_of(&options->plan, &input->model, &input->machine,
		                                               &options->cost, stage, run->micro_batch_tokens, longest);
		if (memory.reserved <= run->memory.reserved)
			continue;
		run->memory = memory;
		run->stage = stage;
	}
	double missing_bytes = run->memory.reserved - input->machine.memory_bytes;
	run->missing_bytes = missing_bytes > 0.0 ? missing_bytes : 0.0;
}

/* Ranks have the space that wlb-worker gives them. */
static void divide_over_all(const struct wlb_plan_request *request, struct wlb_sim_options *options)
{
	const struct wlb_layout *l = &options->plan.layout;
	int64_t window = request->seq_length, windows = options->windows;
	int64_t least = wlb_dynamic_cp_max_tokens(l->dp, window, windows);
	int64_t usual = (int64_t)((double)(window * windows) * request->max_length_ratio);
	options->rank_tokens = ((usual > least ? usual : least) + l->cp - 1) / l->cp;
	options->plan.dynamic_cp = wlb_dynamic_cp_key_ranks(l, options->rank_tokens, options->plan.micro_batches,
	                                                    window, request->global_batch);
}

int wlb_sim_run_strategy(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                         const struct wlb_sim_options *options, int steps, struct wlb_sim_run *run,
                         struct wlb_error *error)
{
	struct wlb_packer_options packing;
	struct wlb_samples samples = {0};
	struct wlb_sim_options own = *options;
	if (run->strategy->attention == WLB_SIM_DYNAMIC && own.cost.trainer == WLB_COST_WORKER) {
		run->strategy = &worker_dynamic;
		divide_over_all(request, &own);
	}
	own.sharding = run->strategy->sharding;
	own.attention = run->strategy->attention;
	struct wlb_sim *sim = wlb_sim_new(&input->model, &input->machine, &own, error);
	if (sim == NULL)
		return -1;
	wlb_packer_options_init(&packing, (int64_t)request->seq_length * own.windows,
	                        request->global_batch / own.windows);
	packing.strategy = run->strategy->packing;
	run->micro_batch_tokens = own.rank_tokens * own.plan.layout.cp;
	packing.max_length_ratio = request->max_length_ratio;
	/* Micro-batches of equal time, as the published packer's measured curves give them too. */
	packing.work = wlb_sim_document_s;
	packing.work_context = sim;
	int rc = wlb_samples_take(&samples, &input->model, &input->stream, &packing, own.windows, SKIPPED_STEPS,
	                          (size_t)steps, error);
	if (rc == 0) {
		set_memory(input, &own, &samples, run);
		rc = simulate(sim, &samples, run, error);
	}
	wlb_sim_free(sim);
	wlb_samples_free(&samples);
	return rc;
}

int wlb_sim_parse_slow(const char *list, int ranks, double *slowdown, struct wlb_error *error)
{
	for (int i = 0; i < ranks; i++)
		slowdown[i] = 1.0;
	char *words = strdup(list), *rest = words;
	int rc = words != NULL ? 0 : wlb_fail(error, "out of memory for '%.60s'", list);
	for (char *word; rc == 0 && (word = strsep(&rest, ",")) != NULL;) {
		char *factor = strchr(word, ':');
		int64_t rank;
		if (factor == NULL) {
			rc = wlb_fail(error, "'%.60s': must be RANK:FACTOR, such as 5:1.5", word);
			break;
		}
		*factor++ = '\0';
		rc = wlb_number_parse("rank", word, 0, ranks - 1, &rank, error);
		if (rc == 0)
			rc = wlb_real_parse("factor", factor, 1.0, 1000.0, &slowdown[rank], error);
	}
	free(words);
	return rc;
}

void wlb_sim_report_free(struct wlb_sim_report *report)
{
	for (int i = 0; i < report->count; i++)
		free(report->runs[i].bars);
	*report = (struct wlb_sim_report){0};
}
