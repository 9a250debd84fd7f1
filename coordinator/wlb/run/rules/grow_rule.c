#include "coordinator/wlb/run/rules/grow_rule.h"

#include <stddef.h>

enum { DAY_S = 24 * 3600 };

static int least_of(int a, int b)
{
	return a < b ? a : b;
}

/* As the coordinator does, it is left out of account that the model may not fit a layout. Returns 0 where no layout
 * uses more nodes than the attempt has. */
static int most_that_fit(const struct wlb_grow_facts *facts, int most)
{
	struct wlb_policy policy = *facts->policy;
	struct wlb_layout layout;
	policy.fixed.dp = 0;
	for (int count = most; count > facts->used; count--) {
		const struct wlb_nodes nodes = {.count = count, .ranks_per_node = facts->ranks_per_node};
		if (wlb_layout_choose(&policy, &nodes, NULL, &layout, NULL) == 0)
			return count;
	}
	return 0;
}

enum wlb_grow_way wlb_grow_decide(const struct wlb_grow_facts *facts, int *nodes)
{
	int least = facts->min_nodes > 0 ? facts->min_nodes : 1;
	int most = facts->first_nodes - facts->spares;
	if (most < least) /* more spares than the run can spare */
		most = least;
	*nodes = facts->returned > 0
	                 ? most_that_fit(facts, least_of(most, facts->used + facts->unused + facts->returned))
	                 : 0;
	if (*nodes > 0)
		return WLB_GROW_IN_JOB;
	if (!facts->may_requeue || facts->allocated >= facts->first_nodes ||
	    facts->usable + facts->idle < facts->first_nodes)
		return WLB_GROW_NOT;
	*nodes = most_that_fit(facts, most);
	return *nodes > 0 ? WLB_GROW_REQUEUE : WLB_GROW_NOT;
}

int64_t wlb_grow_wait_s(int64_t least_s, int growths_without_nodes)
{
	int64_t wait_s = least_s;
	for (int i = 0; i < growths_without_nodes && wait_s < DAY_S; i++)
		wait_s = 2 * wait_s < DAY_S ? 2 * wait_s : DAY_S;
	return wait_s;
}
