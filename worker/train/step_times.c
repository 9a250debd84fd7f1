#include "worker/train/step_times.h"

#include <string.h>

const char *wlb_step_part_name(enum wlb_step_part part)
{
	static const char *const names[WLB_STEP_PARTS] = {
		[WLB_TIME_FORWARD] = "forward_s", [WLB_TIME_BACKWARD] = "backward_s",
		[WLB_TIME_TP] = "tp_s",           [WLB_TIME_CP] = "cp_s",
		[WLB_TIME_PP] = "pp_s",           [WLB_TIME_BUBBLE] = "bubble_s",
		[WLB_TIME_DP] = "dp_s",           [WLB_TIME_OPTIMIZER] = "optimizer_s",
		[WLB_TIME_LOADER] = "loader_s",   [WLB_TIME_WORLD] = "world_s",
	};
	return names[part];
}

struct counted {
	struct wlb_comm *comm;
	enum wlb_step_part part;
};

enum { COMMUNICATORS = 8 };

static void list(const struct wlb_groups *g, struct counted counted[COMMUNICATORS])
{
	const struct counted all[COMMUNICATORS] = {
		{g->tp, WLB_TIME_TP},   {g->kv, WLB_TIME_TP},      {g->cp, WLB_TIME_CP},   {g->pp, WLB_TIME_PP},
		{g->ends, WLB_TIME_PP}, {g->pp_back, WLB_TIME_PP}, {g->data, WLB_TIME_DP}, {g->world, WLB_TIME_WORLD},
	};
	memcpy(counted, all, sizeof(all));
}

void wlb_step_times_of_groups(const struct wlb_groups *groups, double s[WLB_STEP_PARTS])
{
	struct counted counted[COMMUNICATORS];
	list(groups, counted);
	memset(s, 0, WLB_STEP_PARTS * sizeof(*s));
	for (int i = 0; i < COMMUNICATORS; i++)
		s[counted[i].part] += wlb_comm_seconds(counted[i].comm);
}

double wlb_groups_busy_s(const struct wlb_groups *groups)
{
	struct counted counted[COMMUNICATORS];
	double busy_s = 0.0;
	list(groups, counted);
	for (int i = 0; i < COMMUNICATORS; i++)
		busy_s += wlb_comm_busy_s(counted[i].comm);
	return busy_s;
}
