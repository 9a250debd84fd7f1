/* The spans of a trainer's steps (worker/record/span_file.h), in a folder of the attempt below --trace-dir. */
#ifndef WORKER_TRAIN_SPANS_H
#define WORKER_TRAIN_SPANS_H

#include "libwlb/wlb.h"

struct wlb_trainer;
struct wlb_unread_step;

/* Sets trainer->spans, of a run with --trace-dir; rank 0 records where they are. The ranks must be connected. */
int wlb_spans_open(struct wlb_trainer *trainer, struct wlb_error *error);

/* Stops trainer->timer, and adds the part of the step, where the host's clock measures it. */
void wlb_spans_stop_part(struct wlb_trainer *trainer);
/* The step has been read. */
void wlb_spans_end_step(struct wlb_trainer *trainer, const struct wlb_unread_step *step);

#endif
