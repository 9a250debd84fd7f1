/* Measures the parts of a step's time (worker/record/step_parts.h) on one rank. */
#ifndef WORKER_TRAIN_STEP_TIMES_H
#define WORKER_TRAIN_STEP_TIMES_H

#include "worker/parallel/groups.h"
#include "worker/record/step_parts.h"

struct wlb_step_times {
	double s[WLB_STEP_PARTS];
	double compute_s; /* computation of the device in the passes (wlb_ops.busy_s) */
};

/* The clocks of a rank: seconds since an arbitrary moment. */
struct wlb_step_clocks {
	double now_s;
	double communication_s; /* in all communicators */
	double busy_s;          /* of the device, without communication */
};

/* Measures one step at a time; its members are private except `times`. */
struct wlb_step_timer {
	struct wlb_device *device;
	const struct wlb_groups *groups;
	struct wlb_step_times times;
	double communication_before_s[WLB_STEP_PARTS];
	struct wlb_step_clocks started;
};

/* Begins a step: sets all times to 0. The caller owns device and groups. */
void wlb_step_timer_begin(struct wlb_step_timer *timer, struct wlb_device *device, const struct wlb_groups *groups);
/* stop adds the time since start, without the communication in it, to `part`. A start ends the one before it. */
void wlb_step_timer_start(struct wlb_step_timer *timer);
void wlb_step_timer_stop(struct wlb_step_timer *timer, enum wlb_step_part part);
/* Ends the step: adds its communication to the parts of each communicator. */
void wlb_step_timer_end(struct wlb_step_timer *timer);

#endif
