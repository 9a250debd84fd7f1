/* Where the time of a step went on one rank, and how that is measured. */
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

/* What the clocks of a rank say, since an arbitrary moment. */
struct wlb_step_clocks {
	double now_s;
	double communication_s; /* in all communicators */
	double busy_s;          /* of the device, without what communication kept busy */
};

/* Measures one step at a time; its members are private but `times`. */
struct wlb_step_timer {
	struct wlb_device *device;
	const struct wlb_groups *groups;
	struct wlb_step_times times;
	double communication_before_s[WLB_STEP_PARTS];
	struct wlb_step_clocks started;
};

/* A step begins: all times are 0. device and groups stay the caller's. */
void wlb_step_timer_begin(struct wlb_step_timer *timer, struct wlb_device *device, const struct wlb_groups *groups);
/* From start to stop is the time of `part`, but for the communication in it. A start ends the one before. */
void wlb_step_timer_start(struct wlb_step_timer *timer);
void wlb_step_timer_stop(struct wlb_step_timer *timer, enum wlb_step_part part);
/* The step ends: its communication is added to the parts that it belongs to. */
void wlb_step_timer_end(struct wlb_step_timer *timer);

#endif
