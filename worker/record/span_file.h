/*
 * What a rank does in chosen steps, as a file of spans for `wlb trace`: each step, the rank's activities, its passes
 * and its calls of communicators. The file is an array of events of Chrome's trace format, one a line and without its
 * end, which Perfetto reads too:
 *
 *     {"ph":"X","pid":RANK,"tid":TRACK,"name":...,"ts":US,"dur":US,"args":{"step":...}}
 *
 * Times are microseconds of the node's CLOCK_MONOTONIC. Events "M" before them name rank and tracks. Of a call `args`
 * has the number `seq` on its communicator, which is the same on all members, and its `bytes`; it is the time
 * for which the rank waited. A call that the device makes while the host goes on begins when it was queued, or when the
 * communicator's call before it had ended, and ends when the host has seen that it has.
 *
 * Spans wait in memory of fixed size until their step has ended, and are written then. What has no room is counted, and
 * said when the file ends. A file that cannot be written is said once, and training goes on without it.
 */
#ifndef WORKER_RECORD_SPAN_FILE_H
#define WORKER_RECORD_SPAN_FILE_H

#include <stdint.h>

#include "common/step_range.h"
#include "libwlb/wlb.h"
#include "worker/comm/comm_trace.h"

enum {
	WLB_SPANS_OF_STEP_MOST = 1 << 16,
	WLB_SPANS_OF_RANK_MOST = 1 << 18, /* some 40 MB of a file */
};

/* Tracks of a rank; communicator n has the track WLB_TRACK_CALLS + n. */
enum wlb_track { WLB_TRACK_STEPS = 1, WLB_TRACK_HOST, WLB_TRACK_PASSES, WLB_TRACK_CALLS };

struct wlb_span_file;

struct wlb_span_file_options {
	const char *folder; /* made where there is none */
	struct wlb_step_range steps;
	int rank, ranks;
	const char *node;
	struct wlb_coordinates coords;
	struct wlb_comm_trace *calls; /* must outlive the file */
};

/* The texts are copied. No file is made before the first step. NULL if out of memory. */
struct wlb_span_file *wlb_span_file_new(const struct wlb_span_file_options *options, struct wlb_error *error);
/* Writes what is left. NULL allowed. */
void wlb_span_file_close(struct wlb_span_file *file);

/* A step is begun: from now on its spans are taken, or, behind the last step, no more. */
void wlb_span_file_begin_step(struct wlb_span_file *file, int64_t step);
/* Returns whether spans are taken now; not where file is NULL. */
int wlb_span_file_is_on(const struct wlb_span_file *file);
/* Adds a span of the track. `name` must be a string literal. */
void wlb_span_file_add(struct wlb_span_file *file, enum wlb_track track, const char *name, double from_s, double to_s);
/* The rank does this from now on; what it did before becomes a span. */
void wlb_span_file_set_activity(struct wlb_span_file *file, enum wlb_activity activity, double now_s);
/* Adds the calls that have ended since it was last called: before more than WLB_TRACE_EVENTS have. */
void wlb_span_file_add_calls(struct wlb_span_file *file);
/* The step took that time: writes it with the spans that have begun before its end. */
void wlb_span_file_end_step(struct wlb_span_file *file, int64_t step, double from_s, double to_s);

#endif
