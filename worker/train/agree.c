#include "worker/train/agree.h"

int wlb_agree(struct wlb_comm *world, int rc, struct wlb_error *error)
{
	/* The lowest rank that failed has the largest number. */
	double mine = rc < 0 ? (double)(wlb_comm_size(world) - wlb_comm_rank(world)) : 0.0;
	double largest = mine;
	if (wlb_comm_all_reduce_double(world, &largest, 1, WLB_MAX, error) < 0)
		return WLB_FAILED_HERE;
	if (largest == 0.0)
		return 0;
	if (largest != mine)
		error->message[0] = '\0';
	return WLB_FAILED_EVERYWHERE;
}
