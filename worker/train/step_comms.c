#include "worker/train/step_comms.h"

#include <string.h>

void wlb_step_comms_list(const struct wlb_groups *g, struct wlb_step_comm list[WLB_STEP_COMMS])
{
	const struct wlb_step_comm all[WLB_STEP_COMMS] = {
		{g->tp, WLB_TIME_TP},
		{g->kv, WLB_TIME_TP},
		{g->cp, WLB_TIME_CP},
		{g->activations_in, WLB_TIME_PP},
		{g->activations_out, WLB_TIME_PP},
		{g->gradients_in, WLB_TIME_PP},
		{g->gradients_out, WLB_TIME_PP},
		{g->ends, WLB_TIME_PP},
		{g->data, WLB_TIME_DP},
		{g->world, WLB_TIME_WORLD},
	};
	memcpy(list, all, sizeof(all));
}
