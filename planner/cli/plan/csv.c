#include "planner/cli/plan/csv.h"

#include <inttypes.h>
#include <stdio.h>

#include "planner/cli/plan/json.h"
#include "planner/cli/plan/time.h"

static void print_candidate(const struct wlb_candidate *c, int rank)
{
	const struct wlb_plan *plan = &c->plan;
	const struct wlb_layout *l = &plan->layout;
	if (rank > 0)
		printf("%d", rank);
	printf(",%d,%d,%d,%d,%d,%d,%d,%s,%d,%d,%d,%s,%d,%" PRId64, l->tp, l->cp, l->pp, l->dp, plan->micro_batches,
	       plan->interleave, plan->zero_stage, wlb_recompute_name(plan->recompute), plan->recompute_layers,
	       plan->account_for_embedding, plan->account_for_loss, wlb_head_stages_name(plan), c->gpus,
	       c->micro_batch_tokens);
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

void wlb_search_print_csv(const struct wlb_search_result *result)
{
	printf("rank,tp,cp,pp,dp,micro_batches,interleave,zero_stage,recompute,recompute_layers,account_for_embedding,"
	       "account_for_loss,head_stages,"
	       "gpus,micro_batch_tokens,memory_bytes,missing_bytes,fullest_stage,step_s,tokens_per_s,mfu");
	for (int i = 0; i < WLB_TIME_PARTS; i++)
		printf(",%s_s", wlb_time_name(i));
	putchar('\n');
	for (size_t i = 0; i < result->ranked_count; i++)
		print_candidate(&result->ranked[i], (int)i + 1);
	for (size_t i = 0; i < result->misfit_count; i++)
		print_candidate(&result->misfits[i], 0);
}
