/* Where the time of a step went on one rank. */
#ifndef WORKER_TRAIN_STEP_TIMES_H
#define WORKER_TRAIN_STEP_TIMES_H

#include "worker/parallel/groups.h"

/* Seconds of wall time that add up to the step but for odds and ends; communication is what held the rank up, not what
 * went on beside computation. */
enum wlb_step_part {
	WLB_TIME_FORWARD, /* passes, without their communication */
	WLB_TIME_BACKWARD,
	WLB_TIME_TP,     /* tensor-parallel communication, with that of shared key heads */
	WLB_TIME_CP,     /* context-parallel */
	WLB_TIME_PP,     /* sending to another stage */
	WLB_TIME_BUBBLE, /* waiting for what another stage sends */
	WLB_TIME_DP,     /* gradients and weights over the data group */
	WLB_TIME_OPTIMIZER,
	WLB_TIME_LOADER, /* waiting for the data of the step */
	WLB_TIME_WORLD,  /* agreeing on loss, norm and these times; waiting for the slowest rank is in it */
	WLB_STEP_PARTS,
};

struct wlb_step_times {
	double s[WLB_STEP_PARTS];
	double compute_s; /* what the device computed in the passes (wlb_ops.busy_s) */
};

/* "forward_s", "backward_s", "tp_s" ... */
const char *wlb_step_part_name(enum wlb_step_part part);

/* Seconds spent in each communicator so far, at the place of its part; the other parts are 0. */
void wlb_step_times_of_groups(const struct wlb_groups *groups, double s[WLB_STEP_PARTS]);
/* wlb_comm_busy_s of all communicators. */
double wlb_groups_busy_s(const struct wlb_groups *groups);

#endif
