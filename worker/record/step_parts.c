#include "worker/record/step_parts.h"

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
