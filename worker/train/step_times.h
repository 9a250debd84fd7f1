/*
 * What a rank measures of its steps: the parts of a step's time (worker/record/step_parts.h), the calls of each
 * communicator in it, and which steps wlb-agent is told. The host's clock measures the parts where the device has ended
 * a part when its calls return, else events on the device do.
 */
#ifndef WORKER_TRAIN_STEP_TIMES_H
#define WORKER_TRAIN_STEP_TIMES_H

#include <stdint.h>

#include "common/step_ring.h"
#include "worker/parallel/groups.h"
#include "worker/record/step_parts.h"

/* The calls of the step's communicators with several ranks, for wlb-agent (common/step_ring.h): of the first
 * WLB_TRACE_TRANSFERS communicators. */
struct wlb_step_transfers {
	int count;
	struct wlb_comm_use before[WLB_TRACE_TRANSFERS];
	struct wlb_trace_transfer list[WLB_TRACE_TRANSFERS];
};

/* Begins a step: its calls are those until wlb_step_transfers_end. */
void wlb_step_transfers_begin(struct wlb_step_transfers *transfers, const struct wlb_groups *groups);
/* Where `host_waits`, the step has blocked for as long as the host has waited; else wlb_step_events_read adds how long
 * the device waited. */
void wlb_step_transfers_end(struct wlb_step_transfers *transfers, const struct wlb_groups *groups, int host_waits);

/* The parts of a step's time on a device whose steps the host reads late: timed events on the compute queue around each
 * part, which are read when the device has ended the step. What the compute queue waits in a part for other ranks is
 * counted as communication, and the time before the first part as waiting for the data of the step. */
struct wlb_step_events;

/* For steps of at most `most` timed parts. Steps that are unread at once have an object each, of different `number`, 0
 * or 1. The caller owns device and groups, which must outlive it. NULL on failure. */
struct wlb_step_events *wlb_step_events_new(struct wlb_device *device, const struct wlb_groups *groups, int number,
                                            int most, struct wlb_error *error);
void wlb_step_events_free(struct wlb_step_events *events); /* NULL allowed */

/* Sets the times of the step that the device began at the event `began`, a timed one, and has ended. Adds to
 * `transfers` how long it waited for the calls of each communicator. */
void wlb_step_events_read(struct wlb_step_events *events, struct wlb_event *began, struct wlb_step_times *times,
                          struct wlb_step_transfers *transfers);

/* Returns 1 and the times of part i of the step, in seconds since `began`; 0: it has no more parts. */
int wlb_step_events_interval(const struct wlb_step_events *events, int i, struct wlb_event *began,
                             enum wlb_step_part *part, double *from_s, double *to_s);

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

/* Which steps the ranks report to wlb-agent: a step whose number is a multiple of the stride, a power of two. So a run
 * of short steps reports no more steps than agent and coordinator take in a second. Rank 0 chooses the stride,
 * and all ranks learn it with the numbers that they exchange after each step: so all report the same steps. */
struct wlb_step_stride {
	double period_s; /* about the time between two steps that are reported, where steps are shorter */
	double mean_s;   /* of the last steps; 0: none has ended */
	int64_t chosen;  /* by this rank */
	int64_t agreed;  /* the same on all ranks */
};

void wlb_step_stride_init(struct wlb_step_stride *stride, int ranks, int ranks_per_node);
/* Notes how long a step took, and chooses the stride, which counts on rank 0 alone. It changes only where steps are
 * reported more than 1.4 times as often as each period_s, or half as often, so that it does not change from step to
 * step.
 */
void wlb_step_stride_note(struct wlb_step_stride *stride, double step_s);
/* Returns 1 where the step is reported. */
int wlb_step_stride_has(const struct wlb_step_stride *stride, int64_t step);

#endif
