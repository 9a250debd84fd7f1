#include "worker/train/step_comms.h"

enum { OF_EVERY_STAGE = 10 };

/* Returns how many stages this rank's stage shares messages of the head with. */
static int head_edges(const struct wlb_groups *g)
{
	if (g->head_rows == NULL)
		return 0;
	return g->at.pp == g->layout.pp - 1 ? g->at.pp : 1;
}

int wlb_step_comms_count(const struct wlb_groups *g)
{
	return OF_EVERY_STAGE + 2 * head_edges(g);
}

static struct wlb_step_comm of_head(const struct wlb_groups *g, int i)
{
	int stage = g->at.pp == g->layout.pp - 1 ? i / 2 : g->at.pp;
	return (struct wlb_step_comm){i % 2 == 0 ? g->head_rows[stage] : g->head_gradients[stage], WLB_TIME_PP};
}

struct wlb_step_comm wlb_step_comms_at(const struct wlb_groups *g, int i)
{
	const struct wlb_step_comm all[OF_EVERY_STAGE] = {
		{g->tp, WLB_TIME_TP},
		{g->kv, WLB_TIME_TP},
		{g->cp, WLB_TIME_CP},
		{g->activations_in, WLB_TIME_PP},
		{g->activations_out, WLB_TIME_PP},
		{g->gradients_in, WLB_TIME_PP},
		{g->gradients_out, WLB_TIME_PP},
		{g->tied, WLB_TIME_PP},
		{g->data, WLB_TIME_DP},
		{g->world, WLB_TIME_WORLD},
	};
	return i < OF_EVERY_STAGE ? all[i] : of_head(g, i - OF_EVERY_STAGE);
}
