/* Resolves a policy to a layout for the ranks there are. */
#include "libwlb/wlb.h"

#include <limits.h>

/* Sets the dp of a layout that leaves it out to the number of replicas for which there are ranks. */
static int fill_dp(struct wlb_layout *layout, int64_t ranks, struct wlb_error *error)
{
	int64_t replica, stage = (int64_t)layout->tp * layout->cp;
	if (__builtin_mul_overflow(stage, layout->pp, &replica))
		return wlb_fail(
			error,
			"layout tp=%d,cp=%d,pp=%d: tp x cp x pp exceeds 2^63 - 1 and must divide the %lld ranks "
			"there are; use a smaller tp, cp or pp",
			layout->tp, layout->cp, layout->pp, (long long)ranks);
	if (ranks % replica != 0)
		return wlb_fail(error,
		                "layout tp=%d,cp=%d,pp=%d: tp x cp x pp is %lld and must divide the %lld ranks there "
		                "are; start a multiple of %lld, or use a smaller tp, cp or pp",
		                layout->tp, layout->cp, layout->pp, (long long)replica, (long long)ranks,
		                (long long)replica);
	layout->dp = (int)(ranks / replica);
	return 0;
}

int wlb_layout_choose(const struct wlb_policy *policy, const struct wlb_nodes *nodes, const struct wlb_model *model,
                      struct wlb_layout *layout, struct wlb_error *error)
{
	int64_t ranks = wlb_nodes_ranks(nodes);
	if (nodes->count < 1 || ranks < 1 || ranks > INT_MAX)
		return wlb_fail(error, "%d nodes, %lld ranks: there must be at least 1 of each, and at most %d ranks",
		                nodes->count, (long long)ranks, INT_MAX);
	*layout = (struct wlb_layout){.tp = 1, .cp = 1, .pp = 1, .dp = (int)ranks};
	if (policy->kind == WLB_POLICY_FIXED)
		*layout = policy->fixed;
	if (layout->tp < 1 || layout->cp < 1 || layout->pp < 1)
		return wlb_fail(error, "layout tp=%d,cp=%d,pp=%d: each must be at least 1", layout->tp, layout->cp,
		                layout->pp);
	if (layout->dp == 0 && fill_dp(layout, ranks, error) < 0)
		return -1;
	return wlb_layout_check(layout, nodes, model, error);
}
