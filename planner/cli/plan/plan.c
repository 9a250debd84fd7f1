/* wlb plan: the layout for a number of nodes, and why. */
#include <inttypes.h>
#include <stdio.h>

#include "common/output/printable.h"
#include "planner/cli/commands.h"
#include "planner/cli/plan/findings.h"
#include "planner/cli/plan/json.h"
#include "planner/cli/plan/report.h"
#include "planner/cli/plan/time.h"

struct request {
	struct wlb_plan_request input; /* first: WLB_PLAN_INPUT_OPTIONS fills it */
	struct wlb_search_fixed fixed;
	int recompute;                                       /* in the order of the choices of --recompute */
	enum { HEAD_AUTO, HEAD_LAST, HEAD_ALL } head_stages; /* 1 more than shared_head of wlb_search_fixed */
	const char *explain;
	int top;
	bool json, csv;
};

static void print_csv_line(const struct wlb_candidate *c, int rank)
{
	const struct wlb_plan *plan = &c->plan;
	const struct wlb_layout *l = &plan->layout;
	if (rank > 0)
		printf("%d", rank);
	printf(",%d,%d,%d,%d,%d,%d,%d,%d,%s,%d,%d,%d,%s,%d,%" PRId64, l->tp, l->cp, l->pp, l->dp,
	       plan->ep > 1 ? plan->ep : 1, plan->micro_batches, plan->interleave, plan->zero_stage,
	       wlb_recompute_name(plan->recompute), plan->recompute_layers, plan->account_for_embedding,
	       plan->account_for_loss, wlb_head_stages_name(plan), c->gpus, c->micro_batch_tokens);
	printf(",%.0f,%.0f,%d", c->memory.total, c->missing_bytes, c->stage);
	if (rank > 0)
		printf(",%.9g,%.9g,%.9g", c->step_s, c->tokens_per_s, c->utilization);
	else
		printf(",,,");
	for (int i = 0; i < WLB_TIME_PARTS; i++) {
		putchar(',');
		if (rank > 0)
			printf("%.9g", wlb_time_part(&c->time, i));
	}
	putchar('\n');
}

/* Prints a line of names, then a line for each plan: the chosen one, the next best, those that do not fit. What a plan
 * that was not simulated has no value for is empty. */
static void print_csv(const struct wlb_search_result *result)
{
	printf("rank,tp,cp,pp,dp,ep,micro_batches,interleave,zero_stage,recompute,recompute_layers,account_for_"
	       "embedding,"
	       "account_for_loss,head_stages,"
	       "gpus,micro_batch_tokens,memory_bytes,missing_bytes,fullest_stage,step_s,tokens_per_s,mfu");
	for (int i = 0; i < WLB_TIME_PARTS; i++)
		printf(",%s_s", wlb_time_name(i));
	putchar('\n');
	for (size_t i = 0; i < result->ranked_count; i++)
		print_csv_line(&result->ranked[i], (int)i + 1);
	for (size_t i = 0; i < result->misfit_count; i++)
		print_csv_line(&result->misfits[i], 0);
}

static int report(const struct request *request, const struct wlb_plan_input *input,
                  const struct wlb_search_result *result, const struct wlb_plan_findings *findings,
                  struct wlb_error *error)
{
	if (request->json)
		return wlb_json_print_report(wlb_search_to_json(&request->input, input, result, findings), error);
	int rc = 0;
	if (request->csv)
		print_csv(result);
	else
		rc = wlb_search_print(&request->input, input, result, findings);
	return rc == 0 ? 0 : wlb_fail(error, "out of memory for the report");
}

static int find(const struct request *request, struct wlb_plan_input *input, const struct wlb_search_fixed *fixed,
                const struct wlb_search_result *result, struct wlb_plan_findings *findings, struct wlb_error *error)
{
	const struct wlb_candidate *best = &result->ranked[0];
	if (wlb_near_find(&request->input, input, best->gpus, &findings->near, error) < 0)
		return -1;
	wlb_plan_choices_find(&request->input, input, fixed, best, &findings->choices);
	return findings->explained
	               ? wlb_explain(&request->input, input, fixed, request->explain, result, &findings->why, error)
	               : 0;
}

static int run(const struct request *request, struct wlb_plan_input *input, struct wlb_error *error)
{
	struct wlb_search_fixed fixed = wlb_plan_nothing_fixed();
	fixed.tp = request->fixed.tp;
	fixed.cp = request->fixed.cp;
	fixed.pp = request->fixed.pp;
	fixed.dp = request->fixed.dp;
	fixed.ep = request->fixed.ep;
	fixed.interleave = request->fixed.interleave;
	fixed.micro_batch_windows = request->fixed.micro_batch_windows;
	fixed.recompute = request->recompute - 1;
	fixed.shared_head = (int)request->head_stages - 1;
	struct wlb_plan_findings findings = {.explained = request->explain != NULL};
	struct wlb_search_result *result =
		wlb_plan_input_search(&request->input, input, &fixed, request->top + 1, error);
	int code = WLB_EXIT_USAGE;
	if (result != NULL && find(request, input, &fixed, result, &findings, error) == 0)
		code = report(request, input, result, &findings, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	wlb_search_free(result);
	return code;
}

static int plan(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	struct wlb_plan_input input = {0};
	int code = WLB_EXIT_USAGE;
	if (request->json && request->csv)
		wlb_fail(error, "--json and --csv: choose one of them");
	else if (wlb_plan_input_read(&request->input, &input, error) < 0)
		code = WLB_EXIT_USAGE;
	else if (request->head_stages == HEAD_ALL && input.cost.trainer != WLB_COST_WORKER)
		wlb_fail(error,
		         "--head-stages all: only wlb-worker shares the head over all stages; add --trainer worker");
	else
		code = run(request, &input, error);
	wlb_plan_input_free(&input);
	return code;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	WLB_PLAN_INPUT_OPTIONS,
	{WLB_OPTION(INT, "tp", FIELD(fixed.tp), "N", "tensor parallelism"), .min = 1, .max = WLB_PLAN_GPUS_PER_NODE_MAX,
         .heading = "Values that are fixed in the search (default: searched)"},
	{WLB_OPTION(INT, "cp", FIELD(fixed.cp), "N", "context parallelism"), .min = 1, .max = 1 << 20},
	{WLB_OPTION(INT, "pp", FIELD(fixed.pp), "N", "pipeline parallelism"), .min = 1, .max = 1 << 12},
	{WLB_OPTION(INT, "dp", FIELD(fixed.dp), "N", "data parallelism"), .min = 1, .max = 1 << 20},
	{WLB_OPTION(INT, "ep", FIELD(fixed.ep), "N", "expert parallelism: ranks of dp x cp that divide the experts"),
         .min = 1, .max = 1 << 20},
	{WLB_OPTION(INT, "interleave", FIELD(fixed.interleave), "N", "chunks of layers on each pipeline stage"),
         .min = 1, .max = 1024},
	{WLB_OPTION(INT, "micro-batch-size", FIELD(fixed.micro_batch_windows), "N", "windows in a micro-batch"),
         .min = 1, .max = 1 << 20},
	{WLB_OPTION(CHOICE, "recompute", FIELD(recompute), NULL,
                    "what is computed again in the backward pass; auto: full where a plan does not fit otherwise"),
         .choices = "auto|none|selective|full", .initial = "auto"},
	{WLB_OPTION(CHOICE, "head-stages", FIELD(head_stages), NULL,
                    "pipeline stages that compute the output head; all: each an equal share of the rows, as wlb-worker "
                    "can"),
         .choices = "auto|last|all", .initial = "auto"},
	{WLB_OPTION(TEXT, "explain", FIELD(explain), "LAYOUT",
                    "say why this layout, such as tp=8,cp=1,pp=4[,dp=2], is not the one chosen: what its step takes "
                    "longer for, what memory it lacks, or which rule it breaks"),
         .heading = "Output"},
	{WLB_OPTION(INT, "top", FIELD(top), "N", "how many of the next best, and of what does not fit, are shown"),
         .max = 1000, .initial = "5"},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "all of it as a JSON object")},
	{WLB_OPTION(FLAG, "csv", FIELD(csv), NULL,
                    "the plans as lines of comma-separated values, with a line of names; those that do not fit last")},
};

static const struct wlb_option_table table = {
	.command = "wlb plan",
	.about = "Finds how to split a model and its data over GPUs: tensor, context, pipeline and data parallelism, "
		 "micro-batches, interleaving and recomputation with the least step time of those that fit in memory "
		 "and are simulated, 256 at most. Of plans within 1 % of the least the one is chosen that leaves no "
		 "GPU idle, and whose tp, "
		 "cp and pp are most usual: powers of two.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_plan = {
	.name = "plan",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = plan,
};
