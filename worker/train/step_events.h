/*
 * The parts of a step's time on a device whose steps the host reads late: timed events on the compute queue around each
 * part, which are read when the device has ended the step. What the compute queue waits in a part for other ranks is
 * counted as communication, and the time before the first part as waiting for the data of the step.
 */
#ifndef WORKER_TRAIN_STEP_EVENTS_H
#define WORKER_TRAIN_STEP_EVENTS_H

#include "worker/parallel/groups.h"
#include "worker/record/step_parts.h"
#include "worker/train/step_transfers.h"

struct wlb_step_events;

/* For steps of at most `most` timed parts. Steps that are unread at once have an object each, of different `number`, 0
 * or 1. The caller owns device and groups, which must outlive it. NULL on failure. */
struct wlb_step_events *wlb_step_events_new(struct wlb_device *device, const struct wlb_groups *groups, int number,
                                            int most, struct wlb_error *error);
void wlb_step_events_free(struct wlb_step_events *events); /* NULL allowed */

/* Begins a step: forgets the one before, which must have been read. */
void wlb_step_events_begin(struct wlb_step_events *events);
/* What is queued between start and stop is of the part, which is FORWARD, BACKWARD or OPTIMIZER. */
void wlb_step_events_start(struct wlb_step_events *events, enum wlb_step_part part);
void wlb_step_events_stop(struct wlb_step_events *events);

/* Sets the times of the step that the device began at the event `began`, a timed one, and has ended. Adds to
 * `transfers` how long it waited for the calls of each communicator. */
void wlb_step_events_read(struct wlb_step_events *events, struct wlb_event *began, struct wlb_step_times *times,
                          struct wlb_step_transfers *transfers);

#endif
