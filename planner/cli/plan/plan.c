/* wlb plan: the layout for a number of nodes, and why. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/output/printable.h"
#include "planner/cli/commands.h"
#include "planner/cli/plan/compare.h"
#include "planner/cli/plan/findings.h"
#include "planner/cli/plan/json.h"
#include "planner/cli/plan/report.h"
#include "planner/cli/plan/time.h"

struct request {
	struct wlb_plan_request input; /* first: WLB_PLAN_INPUT_OPTIONS fills it */
	struct wlb_search_fixed fixed;
	const char *recompute;                               /* auto, or a set */
	enum { HEAD_AUTO, HEAD_LAST, HEAD_ALL } head_stages; /* 1 more than shared_head of wlb_search_fixed */
	const char *explain;
	int top;
	bool json, csv, compare;
	char **command; /* of a trainer, to compare with; not read without `compare` */
};

static void print_csv_line(const struct wlb_candidate *c, int rank)
{
	const struct wlb_plan *plan = &c->plan;
	const struct wlb_layout *l = &plan->layout;
	char recompute[WLB_RECOMPUTE_TEXT_BYTES];
	wlb_recompute_set_format(plan->recompute, recompute, sizeof(recompute));
	const char *quote = strchr(recompute, ',') != NULL ? "\"" : "";
	if (rank > 0)
		printf("%d", rank);
	printf(",%d,%d,%d,%d,%d,%d,%d,%d,%s%s%s,%d,%d,%d,%s,%d,%" PRId64, l->tp, l->cp, l->pp, l->dp,
	       plan->ep > 1 ? plan->ep : 1, plan->micro_batches, plan->interleave, plan->zero_stage, quote, recompute,
	       quote, plan->recompute_layers, plan->account_for_embedding, plan->account_for_loss,
	       wlb_head_stages_name(plan), c->gpus, c->micro_batch_tokens);
	const struct wlb_memory *m = &c->memory;
	printf(",%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%d", m->weights, m->gradients, m->optimizer,
	       m->activations, m->logits, m->buffers, m->allocated, m->fragmentation, m->runtime, m->reserved,
	       c->missing_bytes, c->stage);
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
	       "account_for_loss,head_stages,gpus,micro_batch_tokens,weights_bytes,gradients_bytes,optimizer_bytes,"
	       "activations_bytes,logits_bytes,buffers_bytes,allocated_bytes,fragmentation_bytes,runtime_bytes,"
	       "reserved_bytes,missing_bytes,fullest_stage,step_s,tokens_per_s,mfu");
	for (int i = 0; i < WLB_TIME_PARTS; i++)
		printf(",%s_s", wlb_time_name(i));
	putchar('\n');
	for (size_t i = 0; i < result->ranked_count; i++)
		print_csv_line(&result->ranked[i], (int)i + 1);
	for (size_t i = 0; i < result->misfit_count; i++)
		print_csv_line(&result->misfits[i], 0);
}

static json_t *to_json(const struct request *request, const struct wlb_plan_input *input,
                       const struct wlb_search_result *result, const struct wlb_plan_findings *findings,
                       const struct wlb_comparison *comparison)
{
	json_t *object = wlb_search_to_json(&request->input, input, result, findings);
	if (object == NULL || !request->compare ||
	    json_object_set_new(object, "compare",
	                        wlb_compare_to_json(comparison, &request->input, input, &result->ranked[0])) == 0)
		return object;
	json_decref(object);
	return NULL;
}

static int report(const struct request *request, const struct wlb_plan_input *input,
                  const struct wlb_search_result *result, const struct wlb_plan_findings *findings,
                  const struct wlb_comparison *comparison, struct wlb_error *error)
{
	if (request->json)
		return wlb_json_print_report(to_json(request, input, result, findings, comparison), error);
	int rc = 0;
	if (request->csv)
		print_csv(result);
	else
		rc = wlb_search_print(&request->input, input, result, findings);
	if (rc == 0 && request->compare)
		wlb_compare_print(comparison, &request->input, input, &result->ranked[0]);
	return rc == 0 ? 0 : wlb_fail(error, "out of memory for the report");
}

static int find(const struct request *request, struct wlb_plan_input *input, const struct wlb_search_fixed *fixed,
                const struct wlb_search_result *result, struct wlb_plan_findings *findings,
                struct wlb_comparison *comparison, struct wlb_error *error)
{
	const struct wlb_candidate *best = &result->ranked[0];
	if (wlb_near_find(&request->input, input, best->gpus, &findings->near, error) < 0)
		return -1;
	wlb_plan_choices_find(&request->input, input, fixed, best, &findings->choices);
	if (request->compare && wlb_compare(&request->input, input, comparison, error) < 0)
		return -1;
	return findings->explained
	               ? wlb_explain(&request->input, input, fixed, request->explain, result, &findings->why, error)
	               : 0;
}

/* Adds to the message that no plan fits what one fits with. */
static void add_choices(const struct request *request, struct wlb_plan_input *input,
                        const struct wlb_search_fixed *fixed, struct wlb_error *error)
{
	struct wlb_plan_choices choices;
	wlb_plan_choices_find(&request->input, input, fixed, NULL, &choices);
	for (int i = 0; i < choices.count; i++) {
		size_t used = strlen(error->message);
		snprintf(error->message + used, sizeof(error->message) - used, "%s %s: step %.3g s",
		         i == 0 ? "; a plan fits with" : ",", choices.found[i].option,
		         choices.found[i].candidate.step_s);
	}
}

static int run(const struct request *request, struct wlb_plan_input *input, struct wlb_comparison *comparison,
               struct wlb_error *error)
{
	struct wlb_search_fixed fixed = wlb_plan_nothing_fixed();
	if (wlb_recompute_read(request->recompute, &fixed.recompute, error) < 0)
		return WLB_EXIT_USAGE;
	fixed.tp = request->fixed.tp;
	fixed.cp = request->fixed.cp;
	fixed.pp = request->fixed.pp;
	fixed.dp = request->fixed.dp;
	fixed.ep = request->fixed.ep;
	fixed.interleave = request->fixed.interleave;
	fixed.micro_batch_windows = request->fixed.micro_batch_windows;
	fixed.shared_head = (int)request->head_stages - 1;
	struct wlb_plan_findings findings = {.explained = request->explain != NULL};
	struct wlb_search_result *result =
		wlb_plan_input_search(&request->input, input, &fixed, request->top + 1, error);
	int code = WLB_EXIT_USAGE;
	if (result == NULL)
		add_choices(request, input, &fixed, error);
	if (result != NULL && find(request, input, &fixed, result, &findings, comparison, error) == 0)
		code = report(request, input, result, &findings, comparison, error) == 0 ? WLB_EXIT_DONE
		                                                                         : WLB_EXIT_FAILED;
	wlb_search_free(result);
	return code;
}

/* Refuses what does not go together, and without a command to compare with the lack of what it would have. */
static int check(const struct request *request, struct wlb_error *error)
{
	bool command = request->command != NULL && request->command[0] != NULL;
	if (request->json && request->csv)
		return wlb_fail(error, "--json and --csv: choose one of them");
	if (request->compare && request->csv)
		return wlb_fail(error, "--compare and --csv: choose one of them");
	if (request->compare != command)
		return request->compare
		               ? wlb_fail(error,
		                          "--compare: the trainer's command is needed behind --, such as: "
		                          "wlb plan --nodes 8 --compare -- pretrain_gpt.py --seq-length 4096 ...")
		               : wlb_fail(error, "'%.200s': a command is taken only with --compare",
		                          request->command[0]);
	if (request->compare || (request->input.seq_length > 0 && request->input.global_batch > 0))
		return 0;
	return wlb_fail(error, "--%s is needed: %s; see 'wlb plan --help'",
	                request->input.seq_length == 0 ? "seq-length" : "global-batch-size",
	                request->input.seq_length == 0 ? "the window, in tokens, such as 131072"
	                                               : "windows in a step, such as 64");
}

static int plan(void *values, struct wlb_error *error)
{
	struct request *request = values;
	struct wlb_plan_input input = {0};
	struct wlb_comparison comparison;
	int code = WLB_EXIT_USAGE;
	if (check(request, error) < 0 || wlb_plan_input_read(&request->input, &input, error) < 0 ||
	    (request->compare &&
	     wlb_mine_read(request->command, &request->fixed, &request->input, &input, &comparison.mine, error) < 0))
		code = WLB_EXIT_USAGE;
	else if (request->head_stages == HEAD_ALL && input.cost.trainer != WLB_COST_WORKER)
		wlb_fail(error,
		         "--head-stages all: only wlb-worker shares the head over all stages; add --trainer worker");
	else if (request->input.dynamic && input.cost.trainer != WLB_COST_WORKER)
		wlb_fail(error, "--packing dynamic: it is planned for wlb-worker alone; add --trainer worker");
	else
		code = run(request, &input, &comparison, error);
	wlb_plan_input_free(&input);
	return code;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(COMMAND, NULL, FIELD(command), "COMMAND [ARGUMENTS]", "with --compare, what is run at present")},
	WLB_PLAN_INPUT_OPTIONS(false, " (required without --compare)"),
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
	{WLB_RECOMPUTE_OPTION(FIELD(recompute),
                              "what is computed again in the backward pass; auto: the least with which a plan fits; or "
                              "modules, by Megatron Core's names and act, the gated products of all MLPs: "
                              "layernorm,moe_act")},
	{WLB_OPTION(CHOICE, "head-stages", FIELD(head_stages), NULL,
                    "pipeline stages that compute the output head; all: each an equal share of the rows, as wlb-worker "
                    "can"),
         .choices = "auto|last|all", .initial = "auto"},
	{WLB_OPTION(CHOICE, "packing", FIELD(input.dynamic), NULL,
                    "dynamic: each document on as many of the cp x dp ranks as it needs, as wlb-worker can"),
         .choices = "balanced|dynamic", .initial = "balanced"},
	{WLB_OPTION(TEXT, "explain", FIELD(explain), "LAYOUT",
                    "say why this layout, such as tp=8,cp=1,pp=4[,dp=2], is not the one chosen: what its step takes "
                    "longer for, what memory it lacks, or which rule it breaks"),
         .heading = "Output"},
	{WLB_OPTION(
		FLAG, "compare", FIELD(compare), NULL,
		"compare with the plan of a trainer's COMMAND behind --, whose options are read: of Megatron-LM, with "
		"--trainer nemo overrides of NeMo, with --trainer torchtitan options of TorchTitan; window, batch and "
		"the model's shape are taken from it; nothing is executed")},
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
