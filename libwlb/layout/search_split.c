#include "libwlb/layout/search_split.h"

#include <math.h>

enum { MOST_LESS = 8 }; /* layers that the first stage or the last has less than the others */

/* Sets the layers of the longest stage and of the last. The first stages have the layers that remain; the first of all
 * has the embedding. */
static void count_layers(const struct wlb_model *model, struct wlb_search_plan *found)
{
	const struct wlb_plan *plan = &found->candidate.plan;
	int32_t last = plan->layout.pp - 1;
	found->last_layers = wlb_plan_stage_layers(plan, model, last);
	found->most_layers = wlb_plan_stage_layers(plan, model, 0);
	int64_t second = last > 1 ? wlb_plan_stage_layers(plan, model, 1) : 0;
	found->most_layers = second > found->most_layers ? second : found->most_layers;
}

/* The operations of the head, in those of a layer. */
static double head_layers(const struct wlb_search *search)
{
	const struct wlb_model *m = &search->model;
	double pairs = search->work.pairs / search->work.tokens;
	double attention = 4.0 * (double)(m->num_attention_heads * wlb_model_head_width(m)) * pairs;
	return 2.0 * (double)(m->hidden_size * m->vocab_size) /
	       (2.0 * wlb_model_layer_active_parameters(m) + attention);
}

double wlb_search_longest_stage(const struct wlb_search_plan *plan, double layer, double head)
{
	const struct wlb_plan *p = &plan->candidate.plan;
	double most = (double)plan->most_layers * layer, last = (double)plan->last_layers * layer;
	if (p->shared_head)
		return fmax(most, last) + head / p->layout.pp;
	return fmax(most, last + head);
}

static int allows(int fixed, int account)
{
	return fixed < 0 || fixed == account;
}

/* Megatron-LM has equally many layers, and what counts as one, in each chunk; wlb-worker has one at least. */
static int is_divisible(const struct wlb_search *search, const struct wlb_plan *plan)
{
	int64_t places = (int64_t)plan->layout.pp * plan->interleave;
	int64_t layers = search->model.num_hidden_layers + plan->account_for_embedding + plan->account_for_loss;
	return search->options.cost.trainer == WLB_COST_WORKER ? places <= layers : layers % places == 0;
}

/* Chooses the plan with these accounts where its longest stage has less work than *least, and sets that. */
static void try_accounts(const struct wlb_search *search, const struct wlb_search_plan *plan, int32_t embedding,
                         int32_t loss, double head, double *least, struct wlb_search_plan *best)
{
	struct wlb_search_plan with = *plan;
	with.candidate.plan.account_for_embedding = embedding;
	with.candidate.plan.account_for_loss = loss;
	if (!is_divisible(search, &with.candidate.plan))
		return;
	count_layers(&search->model, &with);
	double most = wlb_search_longest_stage(&with, 1.0, head);
	if (most < *least) {
		*least = most;
		*best = with;
	}
}

/* Chooses among the divisions where embedding and head count as a layer or not. */
static void try_one_layer(const struct wlb_search *search, const struct wlb_search_plan *plan, double head,
                          double *least, struct wlb_search_plan *best)
{
	const struct wlb_search_fixed *fixed = &search->options.fixed;
	/* One stage has all layers, whatever counts. */
	int one =
		plan->candidate.plan.layout.pp == 1 && fixed->account_for_embedding < 0 && fixed->account_for_loss < 0;
	if (fixed->account_for_embedding > 1 || fixed->account_for_loss > 1)
		try_accounts(search, plan, fixed->account_for_embedding, fixed->account_for_loss, head, least, best);
	for (int32_t accounts = 0; accounts < (one ? 1 : 4); accounts++)
		if (allows(fixed->account_for_embedding, accounts / 2) && allows(fixed->account_for_loss, accounts % 2))
			try_accounts(search, plan, accounts / 2, accounts % 2, head, least, best);
}

/* Chooses among those where more counts: first with the least layers on the first stage, which has the most
 * micro-batches in flight. */
static void try_more_layers(const struct wlb_search *search, const struct wlb_search_plan *plan, double head,
                            double *least, struct wlb_search_plan *best)
{
	int64_t layers = search->model.num_hidden_layers / plan->candidate.plan.layout.pp;
	int32_t most = layers < MOST_LESS ? (int32_t)layers : MOST_LESS;
	for (int32_t embedding = most; embedding >= 0; embedding--)
		for (int32_t loss = embedding > 1 ? 0 : 2; loss <= most; loss++)
			try_accounts(search, plan, embedding, loss, head, least, best);
}

static int takes_more_layers(const struct wlb_search *search, const struct wlb_plan *plan)
{
	const struct wlb_search_fixed *fixed = &search->options.fixed;
	return search->options.cost.trainer != WLB_COST_WORKER && plan->layout.pp > 1 && plan->interleave == 1 &&
	       fixed->account_for_embedding < 0 && fixed->account_for_loss < 0;
}

int wlb_search_split(const struct wlb_search *search, int more, struct wlb_search_plan *plan)
{
	double least = INFINITY, head = head_layers(search);
	struct wlb_search_plan best = *plan;
	if (more && !takes_more_layers(search, &plan->candidate.plan))
		return -1;
	try_one_layer(search, plan, head, &least, &best);
	double before = more ? least : INFINITY;
	if (more)
		try_more_layers(search, plan, head, &least, &best);
	*plan = best;
	return least < before ? 0 : -1;
}
