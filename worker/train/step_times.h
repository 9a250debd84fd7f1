/* Measures the parts of a step's time (worker/record/step_parts.h) on one rank: by the host's clock where the device
 * has ended a part when its calls return, else by events on the device (step_events.h). */
#ifndef WORKER_TRAIN_STEP_TIMES_H
#define WORKER_TRAIN_STEP_TIMES_H

#include "worker/parallel/groups.h"
#include "worker/record/step_parts.h"
#include "worker/train/step_events.h"

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
	struct wlb_step_events *events; /* NULL: the host's clock */
	enum wlb_step_part part;
	struct wlb_step_times times; /* by the host's clock; else wlb_step_events_read sets those of the step */
	double communication_before_s[WLB_STEP_PARTS];
	struct wlb_step_clocks started;
};

/* Begins a step: sets all times to 0. The caller owns device, groups and events; with events NULL the host's clock
 * measures, and the device must have ended what is queued when a part starts and when it stops. */
void wlb_step_timer_begin(struct wlb_step_timer *timer, struct wlb_device *device, const struct wlb_groups *groups,
                          struct wlb_step_events *events);
/* stop adds the time since start, without the communication in it, to `part`: FORWARD, BACKWARD or OPTIMIZER. A start
 * ends the one before it. */
void wlb_step_timer_start(struct wlb_step_timer *timer, enum wlb_step_part part);
void wlb_step_timer_stop(struct wlb_step_timer *timer);
/* Ends the step: adds its communication to the parts of each communicator. */
void wlb_step_timer_end(struct wlb_step_timer *timer);

#endif
