/*
 * The trace of the calls of all communicators (common/rank_trace.h): the training thread writes it, the watchdog and
 * other processes read it. A call that makes the caller wait is an event from when it is waited for; a call that a
 * device runs while the caller goes on is an event when the device has ended it. A communicator of one rank is not
 * traced.
 */
#ifndef WORKER_COMM_COMM_TRACE_H
#define WORKER_COMM_COMM_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "common/rank_trace.h"
#include "libwlb/wlb.h"

struct wlb_comm;

struct wlb_comm_trace;

struct wlb_comm_trace *wlb_comm_trace_new(void);        /* NULL if out of memory */
void wlb_comm_trace_free(struct wlb_comm_trace *trace); /* NULL allowed */
/* From now on the trace is kept in `memory`, which must outlive it, and not in memory of its own. To be called before
 * the first call, and before a communicator is split off the world. */
void wlb_comm_trace_keep_in(struct wlb_comm_trace *trace, struct wlb_rank_trace *memory);
/* Returns where it is kept. */
struct wlb_rank_trace *wlb_comm_trace_memory(const struct wlb_comm_trace *trace);

/* Calls that the device runs without the caller waiting for them (queued.h). The functions are called by any thread,
 * one at a time. */
struct wlb_comm_source {
	/* Returns 1 and the next event that has ended, 2 and the oldest one that has not, or 0 where there is none, or
	 * where the training thread is changing it. */
	int (*next)(struct wlb_comm_source *source, struct wlb_trace_event *event);
	/* Returns 0, or -1 with the reason why the calls will not end. */
	int (*check)(struct wlb_comm_source *source, struct wlb_error *error);
	void (*abort)(struct wlb_comm_source *source);
	struct wlb_comm_source *after; /* the trace's */
};

/* The caller owns the source and must remove it before it frees it. */
void wlb_comm_trace_add_source(struct wlb_comm_trace *trace, struct wlb_comm_source *source);
void wlb_comm_trace_remove_source(struct wlb_comm_trace *trace, struct wlb_comm_source *source);
/* Moves the calls of sources that have ended to the ring, unless another thread looks at the sources now: it does not
 * wait. */
void wlb_comm_trace_poll(struct wlb_comm_trace *trace);
/* Returns 0, or -1 with the first failure that a source has found. */
int wlb_comm_trace_check(struct wlb_comm_trace *trace, struct wlb_error *error);
/* Ends the calls of all sources; the process must end afterwards. */
void wlb_comm_trace_abort(struct wlb_comm_trace *trace);

/* Returns 1 and the event while a call is in progress or waits for the device, else 0. Of calls of sources it is the
 * oldest one, in progress since any of them last ended: only where none ends do the ranks wait for each other. */
int wlb_comm_trace_waiting(struct wlb_comm_trace *trace, struct wlb_trace_event *event);
/* Writes the name of the communicator that an event is of. */
void wlb_comm_trace_name(const struct wlb_comm_trace *trace, const struct wlb_trace_event *event,
                         char name[WLB_TRACE_NAME_SIZE]);

/* The trace that all communicators split from one world share; it is valid until the world is closed. */
struct wlb_comm_trace *wlb_comm_get_trace(const struct wlb_comm *comm);

#endif
