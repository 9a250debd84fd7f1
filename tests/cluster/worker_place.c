/*
 * Prints the coordinates of this rank in the layout as wlb-worker computes them and as the plugin sets them:
 *
 *   place RANK NODE TP CP PP DP WLB_RANK_TP WLB_RANK_CP WLB_RANK_PP WLB_RANK_DP
 *
 * in the layout of WLB_TP, WLB_CP, WLB_PP and WLB_DP; "-" for a variable that is not set.
 */
#include <stdio.h>
#include <stdlib.h>

#include "worker/launch/launch.h"

static const char *variable(const char *name)
{
	const char *value = getenv(name);
	return value != NULL ? value : "-";
}

int main(void)
{
	struct wlb_error error = {0};
	struct wlb_layout layout = {atoi(variable("WLB_TP")), atoi(variable("WLB_CP")), atoi(variable("WLB_PP")),
	                            atoi(variable("WLB_DP"))};
	int exit_code = 0;
	struct wlb_launch *launch = wlb_launch_open(&exit_code, &error);
	if (launch == NULL || wlb_layout_check(&layout, NULL, NULL, &error) < 0) {
		fprintf(stderr, "worker_place: %s\n", error.message);
		return 1;
	}
	struct wlb_coordinates coords = wlb_layout_coordinates(&layout, wlb_launch_place(launch));
	printf("place %d %s %d %d %d %d %s %s %s %s\n", launch->rank, wlb_launch_node(launch, launch->rank), coords.tp,
	       coords.cp, coords.pp, coords.dp, variable("WLB_RANK_TP"), variable("WLB_RANK_CP"),
	       variable("WLB_RANK_PP"), variable("WLB_RANK_DP"));
	wlb_launch_close(launch);
	return 0;
}
