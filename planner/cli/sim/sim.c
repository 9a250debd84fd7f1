/* wlb sim: simulates each way to pack and shard on a cluster that need not exist. */
#include <stdlib.h>
#include <string.h>

#include "common/output/printable.h"
#include "planner/cli/commands.h"
#include "planner/cli/plan/json.h"
#include "planner/cli/sim/draw.h"
#include "planner/cli/sim/report.h"
#include "planner/cli/sim/run.h"

struct request {
	struct wlb_plan_request input; /* first: WLB_PLAN_INPUT_OPTIONS fills it */
	const char *layout, *strategies, *svg, *slow;
	int interleave, steps, ring, windows, ep;
	const char *recompute; /* auto, or a set */
	int recompute_layers;
	double node_mtbf_h, checkpoint_s, restart_s;
	enum { HEAD_LAST, HEAD_ALL } head_stages;
	bool account_for_embedding, account_for_loss, json, csv;
};

/* Reads the names of --strategies into the report's runs. */
static int read_strategies(const char *list, struct wlb_sim_report *report, struct wlb_error *error)
{
	char *words = strdup(list), *rest = words;
	int rc = words != NULL ? 0 : wlb_fail(error, "out of memory for --strategies");
	for (const char *word; rc == 0 && (word = strsep(&rest, ",")) != NULL;) {
		const struct wlb_sim_strategy *strategy = wlb_sim_strategy_find(word);
		if (strategy == NULL)
			rc = wlb_fail(error,
			              "--strategies '%.60s': use some of plain, fixed, greedy, balanced, dynamic, "
			              "hybrid and servers",
			              word);
		else if (report->count == WLB_SIM_RUNS_MAX)
			rc = wlb_fail(error, "--strategies: more than %d", WLB_SIM_RUNS_MAX);
		else if (strcmp(word, "plain") == 0)
			report->base = report->count;
		if (rc == 0)
			report->runs[report->count++].strategy = strategy;
	}
	free(words);
	return rc;
}

/* Returns the most ranks that can divide the experts: the greatest common divisor of their number and of dp x cp; 1
 * where there are none. */
static int32_t most_expert_ranks(const struct wlb_model *model, const struct wlb_layout *layout)
{
	int64_t a = model->num_experts > 0 ? model->num_experts : 1, b = (int64_t)layout->dp * layout->cp;
	while (b > 0) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return (int32_t)a;
}

/* Sets the requested layout, with as many micro-batches as the windows fill. */
static int read_plan(const struct request *request, const struct wlb_plan_input *input, struct wlb_plan *plan,
                     struct wlb_error *error)
{
	struct wlb_policy policy;
	int batch = request->input.global_batch, recompute;
	if (wlb_policy_parse(request->layout, &policy, error) < 0 ||
	    wlb_recompute_read(request->recompute, &recompute, error) < 0)
		return -1;
	if (recompute < 0) /* what the trainer recomputes where nothing else is said */
		recompute = input->cost.release_activations ? WLB_RECOMPUTE_SELECTIVE : WLB_RECOMPUTE_NONE;
	if (policy.kind != WLB_POLICY_FIXED)
		return wlb_fail(error, "--layout '%.60s': must be a layout, such as tp=8,cp=2,pp=4", request->layout);
	/* Here tp may span nodes, and the simulation accounts for it; for the check all GPUs are on one node. */
	const struct wlb_nodes gpus = {.count = 1, .ranks_per_node = input->gpus};
	struct wlb_layout layout;
	if (wlb_layout_choose(&policy, &gpus, &input->model, &layout, error) < 0)
		return -1;
	if (batch % (layout.dp * (int64_t)request->windows) != 0)
		return wlb_fail(error,
		                "'%.60s': --global-batch-size %d must be a multiple of dp %d x --micro-batch-size %d",
		                request->layout, batch, layout.dp, request->windows);
	*plan = (struct wlb_plan){
		.layout = layout,
		.interleave = request->interleave,
		.micro_batches = batch / layout.dp / request->windows,
		.zero_stage = request->input.zero_stage,
		.recompute = (enum wlb_recompute)recompute,
		.recompute_layers = request->recompute_layers,
		.account_for_embedding = request->account_for_embedding,
		.account_for_loss = request->account_for_loss,
		.shared_head = layout.pp > 1 && request->head_stages == HEAD_ALL,
		.ep = request->ep > 0 ? request->ep : most_expert_ranks(&input->model, &layout),
	};
	return wlb_plan_check(plan, &input->model, error);
}

/* Searches for the best layout whose micro-batches have the windows that the packers give them. */
static int find_plan(const struct request *request, struct wlb_plan_input *input, struct wlb_plan *plan,
                     struct wlb_error *error)
{
	enum { CANDIDATES = 1000 };
	struct wlb_search_fixed fixed = wlb_plan_nothing_fixed();
	fixed.micro_batch_windows = request->windows;
	fixed.ep = request->ep;
	struct wlb_search_result *result = wlb_plan_input_search(&request->input, input, &fixed, CANDIDATES, error);
	if (result == NULL)
		return -1;
	int rc = -1;
	for (size_t i = 0; rc < 0 && i < result->ranked_count; i++) {
		*plan = result->ranked[i].plan;
		if ((int64_t)plan->layout.dp * plan->micro_batches * request->windows == request->input.global_batch)
			rc = 0;
	}
	wlb_search_free(result);
	if (rc < 0)
		wlb_fail(error, "no layout that was simulated has --micro-batch-size %d: name one with --layout",
		         request->windows);
	return rc;
}

static int compute_goodput(const struct request *request, const struct wlb_plan_input *input,
                           struct wlb_sim_failures *failures, struct wlb_error *error)
{
	failures->given = (struct wlb_failures){
		.mtbf_s = 3600.0 * request->node_mtbf_h,
		.nodes = input->nodes,
		.checkpoint_s = request->checkpoint_s,
		.restart_s = request->restart_s,
	};
	return request->node_mtbf_h > 0.0 ? wlb_goodput(&failures->given, &failures->found, error) : 0;
}

static int run_all(const struct request *request, struct wlb_plan_input *input, const double *slowdown,
                   struct wlb_sim_report *report, struct wlb_error *error)
{
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &report->plan);
	options.cost = input->cost;
	options.ring = request->ring;
	options.windows = request->windows;
	options.leaf = input->leaf;
	options.slowdown = slowdown;
	report->steps = request->steps;
	for (int i = 0; i < report->count; i++)
		if (wlb_sim_run_strategy(&request->input, input, &options, request->steps, &report->runs[i], error) < 0)
			return -1;
	return compute_goodput(request, input, &report->failures, error);
}

/* Runs the simulation; the caller frees *slowdown. */
static int simulate(const struct request *request, struct wlb_plan_input *input, double **slowdown,
                    struct wlb_sim_report *report, struct wlb_error *error)
{
	int ranks = wlb_layout_ranks(&report->plan.layout);
	if (request->slow != NULL) {
		*slowdown = calloc((size_t)ranks, sizeof(**slowdown));
		if (*slowdown == NULL)
			return wlb_fail(error, "out of memory for %d ranks", ranks);
		if (wlb_sim_parse_slow(request->slow, ranks, *slowdown, error) < 0)
			return wlb_fail_in(error, "--slow");
	}
	return run_all(request, input, *slowdown, report, error);
}

static int show(const struct request *request, const struct wlb_plan_input *input, const struct wlb_sim_report *report,
                struct wlb_error *error)
{
	if (request->svg != NULL && wlb_sim_draw(request->svg, report, error) < 0)
		return -1;
	if (request->json)
		return wlb_json_print_report(wlb_sim_to_json(&request->input, input, report), error);
	if (request->csv) {
		wlb_sim_print_csv(report);
		return 0;
	}
	return wlb_sim_print(&request->input, input, report) == 0 ? 0 : wlb_fail(error, "out of memory for the report");
}

static int check_request(const struct request *request, struct wlb_error *error)
{
	if (request->json && request->csv)
		return wlb_fail(error, "--json and --csv: choose one of them");
	if (request->windows > (1 << 30) / request->input.seq_length)
		return wlb_fail(error,
		                "--micro-batch-size %d: a micro-batch has at most %d tokens, %d windows of "
		                "--seq-length %d",
		                request->windows, 1 << 30, (1 << 30) / request->input.seq_length,
		                request->input.seq_length);
	return 0;
}

static int sim(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	struct wlb_plan_input input = {0};
	struct wlb_sim_report report = {0};
	double *slowdown = NULL;
	int code = WLB_EXIT_USAGE;
	int rc = check_request(request, error);
	if (rc == 0)
		rc = read_strategies(request->strategies, &report, error);
	if (rc == 0)
		rc = wlb_plan_input_read(&request->input, &input, error);
	if (rc == 0 && request->layout != NULL && (rc = read_plan(request, &input, &report.plan, error)) < 0)
		wlb_fail_in(error, "--layout");
	if (rc == 0 && request->layout == NULL)
		rc = find_plan(request, &input, &report.plan, error);
	if (rc == 0)
		rc = simulate(request, &input, &slowdown, &report, error);
	if (rc == 0)
		code = show(request, &input, &report, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	free(slowdown);
	wlb_sim_report_free(&report);
	wlb_plan_input_free(&input);
	return code;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	WLB_PLAN_INPUT_OPTIONS(true, ""),
	{WLB_OPTION(TEXT, "layout", FIELD(layout), "LAYOUT",
                    "such as tp=8,cp=2,pp=4[,dp=4]: the product must be the number of GPUs (default: the "
                    "best of 'wlb plan' with --micro-batch-size windows in a micro-batch)")},
	{WLB_OPTION(
		 INT, "ep", FIELD(ep), "N",
		 "expert parallelism: ranks of dp x cp that divide the experts (default: searched, with --layout the "
		 "most that can)"),
         .min = 1, .max = 1 << 20},
	{WLB_OPTION(INT, "micro-batch-size", FIELD(windows), "N",
                    "windows in a micro-batch, which the packers fill; plain and fixed fill each window by itself"),
         .min = 1, .max = 1 << 20, .initial = "1"},
	{WLB_OPTION(INT, "interleave", FIELD(interleave), "N",
                    "chunks of layers on each pipeline stage, with --layout"),
         .min = 1, .max = 1024, .initial = "1"},
	{WLB_RECOMPUTE_OPTION(FIELD(recompute),
                              "what is computed again in the backward pass, with --layout; auto: none, or selective "
                              "where the trainer releases activations; or modules, as for wlb plan")},
	{WLB_OPTION(INT, "recompute-num-layers", FIELD(recompute_layers), "N",
                    "with --recompute full: the first N layers of each chunk (default: all)"),
         .min = 1, .max = 1024},
	{WLB_OPTION(FLAG, "account-for-embedding-in-pipeline-split", FIELD(account_for_embedding), NULL,
                    "count the embedding as a layer where layers are divided among stages, with --layout")},
	{WLB_OPTION(FLAG, "account-for-loss-in-pipeline-split", FIELD(account_for_loss), NULL,
                    "count the output head with its loss as a layer there, with --layout")},
	{WLB_OPTION(CHOICE, "head-stages", FIELD(head_stages), NULL,
                    "pipeline stages that compute the output head, with --layout; all: each an equal share of the "
                    "rows, as wlb-worker can"),
         .choices = "last|all", .initial = "last"},
	{WLB_OPTION(TEXT, "strategies", FIELD(strategies), "LIST",
                    "of plain, fixed, greedy, balanced, dynamic, hybrid and servers"),
         .initial = "plain,greedy,balanced"},
	{WLB_OPTION(CHOICE, "cp-communication", FIELD(ring), NULL,
                    "how keys and values reach the context-parallel ranks; gather: before attention, of which "
                    "--cp-overlap is hidden; ring: around the ranks beside attention over those that have arrived, as "
                    "Megatron-LM's --cp-comm-type p2p"),
         .choices = "gather|ring", .initial = "gather"},
	{WLB_OPTION(INT, "steps", FIELD(steps), "N", "steps to simulate"), .min = 1, .max = 100000, .initial = "100"},
	{WLB_OPTION(TEXT, "slow", FIELD(slow), "LIST",
                    "RANK:FACTOR,...: the computation of each RANK takes FACTOR times as long")},
	{WLB_OPTION(REAL, "node-mtbf", FIELD(node_mtbf_h), "HOURS",
                    "mean time between failures of a node: says what they cost the run, with checkpoints at the best "
                    "interval"),
         .min = 1e-3, .max = 1e9},
	{WLB_OPTION(REAL, "checkpoint-time", FIELD(checkpoint_s), "SECONDS", "how long a checkpoint stops training"),
         .max = 1e6, .initial = "60"},
	{WLB_OPTION(REAL, "restart-time", FIELD(restart_s), "SECONDS", "from a failure to training again"), .max = 1e6,
         .initial = "300"},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "all of it as a JSON object")},
	{WLB_OPTION(FLAG, "csv", FIELD(csv), NULL,
                    "the strategies as lines of comma-separated values, with a line of names")},
	{WLB_OPTION(TEXT, "svg", FIELD(svg), "FILE", "a picture of the pipelines")},
};

static const struct wlb_option_table table = {
	.command = "wlb sim",
	.about = "Simulates training steps and prints how much faster each way to pack and shard documents is than the "
		 "plain one, and where that comes from.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_sim = {
	.name = "sim",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = sim,
};
