#include "planner/cli/plan/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/output/table.h"
#include "common/output/terminal.h"
#include "coordinator/slurm/slurm_api.h"
#include "planner/cli/chart.h"
#include "planner/cli/plan/json.h"
#include "planner/cli/plan/time.h"

/* "71.30 GiB", "55.21 MiB". */
static void format_memory(double bytes, char text[32])
{
	const double mib = 1024.0 * 1024.0, gib = 1024.0 * mib;
	snprintf(text, 32, "%.2f %s", bytes / (bytes < gib ? mib : gib), bytes < gib ? "MiB" : "GiB");
}

/* Prints which of embedding and loss count as layers of the pipeline, or how many the stages at the ends have:
 * Megatron-LM has options for both. */
static void print_accounts(const struct wlb_plan *plan, const struct wlb_model *model)
{
	int32_t last = plan->layout.pp - 1;
	if (plan->account_for_embedding > 1 || plan->account_for_loss > 1)
		printf("  layers of the first stage %" PRId64 ", of the last %" PRId64 ", of each other %" PRId64 "\n",
		       wlb_plan_stage_layers(plan, model, 0), wlb_plan_stage_layers(plan, model, last),
		       wlb_plan_stage_layers(plan, model, 0) + plan->account_for_embedding);
	else if (plan->account_for_embedding || plan->account_for_loss)
		printf("  counted as layers of the pipeline: %s%s%s\n",
		       plan->account_for_embedding ? "the embedding" : "",
		       plan->account_for_embedding && plan->account_for_loss ? ", " : "",
		       plan->account_for_loss ? "the head with its loss" : "");
}

static void print_preference(const struct wlb_search_result *result)
{
	const struct wlb_candidate *best = &result->ranked[0], *fastest = &result->ranked[1];
	char layout[64];
	if (!result->preferred)
		return;
	double less_percent = 100.0 * (1.0 - result->fastest_s / best->step_s);
	if (result->ranked_count < 2) {
		printf("  chosen as the most usual of nearly equal layouts: the fastest takes %.1f%% less time\n",
		       less_percent);
		return;
	}
	wlb_layout_format(&fastest->plan.layout, layout, sizeof(layout));
	if (fastest->gpus < result->gpus && best->gpus == result->gpus)
		printf("  chosen of nearly equal plans as one that leaves no GPU idle: %s on %d GPUs takes %.1f%% less "
		       "time\n",
		       layout, fastest->gpus, less_percent);
	else
		printf("  chosen as the most usual of nearly equal layouts: %s takes %.1f%% less time\n", layout,
		       less_percent);
}

static void print_best(const struct wlb_plan_request *request, const struct wlb_plan_input *input,
                       const struct wlb_search_result *result, const struct wlb_published_near *near)
{
	const struct wlb_candidate *best = &result->ranked[0];
	char layout[64], model[256], recompute[WLB_RECOMPUTE_TEXT_BYTES];
	wlb_layout_format(&best->plan.layout, layout, sizeof(layout));
	wlb_plan_input_model_words(request, input, model, sizeof(model));
	printf("%s: %d of %d GPUs, %d micro-batches for each replica, up to %" PRId64 " tokens in one\n", layout,
	       best->gpus, result->gpus, best->plan.micro_batches, best->micro_batch_tokens);
	wlb_recompute_format(&best->plan, recompute, sizeof(recompute));
	printf("  interleave %d, recomputation %s, ZeRO stage %d, %s\n", best->plan.interleave, recompute,
	       best->plan.zero_stage, input->machine.name);
	print_accounts(&best->plan, &input->model);
	if (best->plan.ep > 1)
		printf("  expert parallelism %d: %" PRId64 " of %" PRId64
		       " experts of a layer on each rank, equal shares of "
		       "tokens for all\n",
		       best->plan.ep, input->model.num_experts / best->plan.ep, input->model.num_experts);
	if (best->plan.shared_head)
		puts("  the output head is computed by all pipeline stages, each an equal share of the rows");
	printf("  %s\n", model);
	printf("  step %.*f s, %.0f tokens/s, MFU %.1f%% (%s attention%s)\n", wlb_time_decimals(best->step_s),
	       best->step_s, best->tokens_per_s, 100.0 * best->utilization,
	       request->trainer.full_attention ? "full" : "causal",
	       input->cost.fp8 != WLB_FP8_NONE ? "; products in 8 bits, of the peak in bfloat16" : "");
	wlb_near_print(near);
	print_preference(result);
	printf("  %" PRId64 " plans: %" PRId64 " do not fit, %" PRId64 " pruned by their lower bound, %" PRId64
	       " simulated",
	       result->tried, result->no_memory, result->pruned, result->simulated);
	if (result->unexplored > 0)
		printf(", %" PRId64 " not simulated (at most %" PRId64 " are)", result->unexplored, result->simulated);
	puts("");
	puts("\nWhere the step's time goes");
	wlb_time_print(&best->time);
}

static void print_memory(const struct wlb_plan_input *input, const struct wlb_candidate *best)
{
	const struct {
		const char *label;
		double bytes;
	} parts[] = {{"weights", best->memory.weights},
	             {"gradients", best->memory.gradients},
	             {"optimizer", best->memory.optimizer},
	             {"activations", best->memory.activations},
	             {"logits", best->memory.logits},
	             {"communication", best->memory.buffers},
	             {"fragmentation", best->memory.fragmentation},
	             {"CUDA and NCCL", best->memory.runtime}};
	struct wlb_bar bars[sizeof(parts) / sizeof(parts[0])];
	char total[32], limit[32], allocated[32];
	int count = 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].bytes <= 0.0)
			continue;
		struct wlb_bar *bar = &bars[count++];
		snprintf(bar->label, sizeof(bar->label), "%s", parts[i].label);
		format_memory(parts[i].bytes, bar->note);
		bar->value = parts[i].bytes;
	}
	format_memory(best->memory.allocated, allocated);
	format_memory(best->memory.reserved, total);
	format_memory(input->machine.memory_bytes, limit);
	printf("\nMemory of a GPU of stage %d, which needs the most: %s of %s, of which it allocates %s\n", best->stage,
	       total, limit, allocated);
	wlb_bars(stdout, bars, count, wlb_terminal_columns(), wlb_terminal_unicode());
	if (best->memory.saved > 0.0) {
		format_memory(best->memory.saved, total);
		printf("\nMemory of the host for each GPU where the run saves: %s\n", total);
		format_memory(best->memory.saved_local, total);
		printf("With --save-local in a RAM disk: %s\n", total);
	}
}

/* What follows the recomputation of a plan. */
static const char *head_words(const struct wlb_plan *plan)
{
	return plan->shared_head ? ", head on all stages" : "";
}

static void format_plan(const struct wlb_candidate *candidate, char layout[64], char rest[192])
{
	char recompute[WLB_RECOMPUTE_TEXT_BYTES], experts[32] = "";
	wlb_layout_format(&candidate->plan.layout, layout, 64);
	wlb_recompute_format(&candidate->plan, recompute, sizeof(recompute));
	if (candidate->plan.ep > 1)
		snprintf(experts, sizeof(experts), ", ep %d", candidate->plan.ep);
	snprintf(rest, 192, "%d x %d, %s%s%s", candidate->plan.micro_batches, candidate->plan.interleave, recompute,
	         experts, head_words(&candidate->plan));
}

/* The part of the step that is longest compared with the best: why it is slower. */
static int grown_part(const struct wlb_sim_time *time, const struct wlb_sim_time *best)
{
	int most = 0;
	for (int i = 1; i < WLB_TIME_PARTS; i++)
		if (wlb_time_part(time, i) - wlb_time_part(best, i) >
		    wlb_time_part(time, most) - wlb_time_part(best, most))
			most = i;
	return most;
}

static void print_choices(const struct wlb_plan_choices *choices, const struct wlb_candidate *best)
{
	if (choices->count > 0)
		puts("\nWhat would save recomputation");
	for (int i = 0; i < choices->count; i++) {
		const struct wlb_candidate *c = &choices->found[i].candidate;
		char layout[64], rest[192], memory[32], freed[32];
		double percent = 100.0 * (c->step_s / best->step_s - 1.0), bytes = choices->found[i].freed_bytes;
		format_plan(c, layout, rest);
		format_memory(c->memory.reserved, memory);
		format_memory(bytes < 0.0 ? -bytes : bytes, freed);
		printf("  %s %s %s; fits: step %.*f s, %.1f%% %s: %s, %s, %s\n", choices->found[i].option,
		       bytes < 0.0 ? "takes" : "frees", freed, wlb_time_decimals(best->step_s), c->step_s,
		       percent < 0.0 ? -percent : percent, percent < 0.0 ? "shorter" : "longer", layout, rest, memory);
	}
}

static int print_next(const struct wlb_search_result *result)
{
	struct wlb_table table = {.columns = 6, .right = "llrrrl"};
	const struct wlb_candidate *best = &result->ranked[0];
	const int decimals = wlb_time_decimals(best->step_s);
	if (result->ranked_count < 2)
		return 0;
	puts("\nThe next best");
	wlb_table_add(&table, (const char *const[]){"LAYOUT", "MICRO-BATCHES x INTERLEAVE, RECOMPUTATION", "STEP", "",
	                                            "MEMORY", "MOST OF IT"});
	for (size_t i = 1; i < result->ranked_count; i++) {
		const struct wlb_candidate *next = &result->ranked[i];
		char layout[64], rest[192], step[32], more[32], memory[32], why[96];
		int part = grown_part(&next->time, &best->time);
		format_plan(next, layout, rest);
		snprintf(step, sizeof(step), "%.*f s", decimals, next->step_s);
		snprintf(more, sizeof(more), "%+.1f%%", 100.0 * (next->step_s / best->step_s - 1.0));
		format_memory(next->memory.reserved, memory);
		snprintf(why, sizeof(why), "%s %+.*f s", wlb_time_words(part), decimals,
		         wlb_time_part(&next->time, part) - wlb_time_part(&best->time, part));
		wlb_table_add(&table, (const char *const[]){layout, rest, step, more, memory, why});
	}
	return wlb_table_print(&table, "  ", stdout);
}

static int print_misfits(const struct wlb_search_result *result)
{
	struct wlb_table table = {.columns = 4, .right = "llrr"};
	if (result->misfit_count == 0)
		return 0;
	puts("\nWhat would not fit, and by how much");
	wlb_table_add(&table, (const char *const[]){"LAYOUT", "MICRO-BATCHES x INTERLEAVE, RECOMPUTATION", "MEMORY",
	                                            "MISSING"});
	for (size_t i = 0; i < result->misfit_count; i++) {
		const struct wlb_candidate *misfit = &result->misfits[i];
		char layout[64], rest[192], memory[32], missing[32];
		format_plan(misfit, layout, rest);
		format_memory(misfit->memory.reserved, memory);
		format_memory(misfit->missing_bytes, missing);
		wlb_table_add(&table, (const char *const[]){layout, rest, memory, missing});
	}
	return wlb_table_print(&table, "  ", stdout);
}

/* Returns the nodes of a list of GPUs, each once, as a hostlist in their order; the caller frees it. */
static char *fold_nodes(const struct wlb_plan_input *input, const int32_t *node, int32_t count)
{
	char **names = calloc((size_t)count + 1, sizeof(*names)), text[16];
	int used = 0;
	for (int32_t i = 0; names != NULL && i < count; i++)
		if (i == 0 || node[i] != node[i - 1])
			names[used++] = strdup(wlb_plan_node_name(input, node[i], text, sizeof(text)));
	struct wlb_error error;
	char *folded = names != NULL ? wlb_hostlist_fold(names, used, &error) : NULL;
	wlb_strings_free(names, used);
	return folded;
}

static int print_places(const struct wlb_plan_input *input, const struct wlb_search_result *result)
{
	const struct wlb_layout *layout = &result->ranked[0].plan.layout;
	char *nodes = fold_nodes(input, result->rank_node, result->ranks);
	if (nodes == NULL)
		return -1;
	printf("\nRanks 0 to %d on nodes %s in this order: tp fastest (%d neighbours), then cp, pp, dp\n",
	       result->ranks - 1, nodes, layout->tp);
	free(nodes);
	if (result->idle == 0)
		return 0;
	char *idle = fold_nodes(input, result->idle_node, result->idle);
	if (idle == NULL)
		return -1;
	printf("Idle: %d GPUs, on %s\n", result->idle, idle);
	free(idle);
	return 0;
}

/* The parts of the step in which the two differ by a hundredth of the step or more. */
static void print_differences(const struct wlb_sim_time *this, const struct wlb_sim_time *best)
{
	for (int i = 0; i < WLB_TIME_PARTS; i++) {
		double more_s = wlb_time_part(this, i) - wlb_time_part(best, i);
		if (more_s >= 0.01 * best->step_s || more_s <= -0.01 * best->step_s)
			printf("  %-40s %+9.*f s\n", wlb_time_words(i), wlb_time_decimals(best->step_s), more_s);
	}
}

void wlb_candidate_print_beside(const char *verb, const struct wlb_candidate *this, const struct wlb_candidate *best)
{
	char recompute[WLB_RECOMPUTE_TEXT_BYTES], memory[32];
	wlb_recompute_format(&this->plan, recompute, sizeof(recompute));
	format_memory(this->memory.reserved, memory);
	printf("  it %s, with %d x %d micro-batches and recomputation %s%s: step %.*f s, %+.1f%%, on %d GPUs; "
	       "it needs %s of memory\n",
	       verb, this->plan.micro_batches, this->plan.interleave, recompute, head_words(&this->plan),
	       wlb_time_decimals(best->step_s), this->step_s, 100.0 * (this->step_s / best->step_s - 1.0), this->gpus,
	       memory);
	print_differences(&this->time, &best->time);
}

static void print_explanation(const struct wlb_explanation *why, const struct wlb_search_result *result)
{
	const struct wlb_candidate *best = &result->ranked[0], *this = &why->candidate;
	const struct wlb_policy asked = {WLB_POLICY_FIXED, why->can_run ? this->plan.layout : why->asked};
	char layout[64];
	wlb_policy_format(&asked, layout, sizeof(layout));
	printf("\nWhy not %s\n", layout);
	if (!why->can_run) {
		printf("  %s\n", why->reason);
		return;
	}
	if (memcmp(&best->plan, &this->plan, sizeof(best->plan)) == 0) {
		puts("  it is the layout chosen");
		return;
	}
	wlb_candidate_print_beside("runs", this, best);
	if (this->step_s <= best->step_s)
		puts("  it is nearly equal to the layout chosen, which is more usual");
}

int wlb_search_print(const struct wlb_plan_request *request, const struct wlb_plan_input *input,
                     const struct wlb_search_result *result, const struct wlb_plan_findings *findings)
{
	print_best(request, input, result, &findings->near);
	print_memory(input, &result->ranked[0]);
	print_choices(&findings->choices, &result->ranked[0]);
	if (print_next(result) < 0 || print_misfits(result) < 0)
		return -1;
	if (findings->explained)
		print_explanation(&findings->why, result);
	return print_places(input, result);
}
