/*
 * The trace of collectives: a ring of the newest events, and the event that is in progress. The training thread writes;
 * a watchdog or reporter thread may read at any time. A started call becomes an event when it is waited for, so events
 * are in the order in which they blocked the caller. A communicator of one rank records no events.
 */
#ifndef WORKER_COMM_COMM_TRACE_H
#define WORKER_COMM_COMM_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_comm;

enum wlb_comm_kind {
	WLB_COMM_ALL_REDUCE,
	WLB_COMM_ALL_REDUCE_DOUBLE,
	WLB_COMM_REDUCE_SCATTER,
	WLB_COMM_ALL_GATHER,
	WLB_COMM_SEND,
	WLB_COMM_RECV,
};

const char *wlb_comm_kind_name(enum wlb_comm_kind kind);

struct wlb_comm_event {
	enum wlb_comm_kind kind;
	char comm[16];    /* name of the communicator */
	uint64_t seq;     /* 1 for the first collective of that communicator */
	uint64_t bytes;   /* of the local buffer */
	double entered_s; /* CLOCK_MONOTONIC; for a started call (comm.h): when it was started */
	double blocked_s; /* when it began to block the caller; later than entered_s for started calls only */
	double left_s;    /* 0 while the call is in progress */
};

struct wlb_comm_trace;

struct wlb_comm_trace *wlb_comm_trace_new(size_t capacity); /* NULL if out of memory */
void wlb_comm_trace_free(struct wlb_comm_trace *trace);     /* NULL allowed */

/* Begins `event`, which is copied: the caller is blocked in it until wlb_comm_trace_leave. */
void wlb_comm_trace_enter(struct wlb_comm_trace *trace, const struct wlb_comm_event *event);
void wlb_comm_trace_leave(struct wlb_comm_trace *trace, double left_s);

/* The caller waits, until the next call with NULL, for the device to do the work that `event`, which is copied, needs
 * before it can start. blocked_s is when that wait began. It is no event of the ring. */
void wlb_comm_trace_wait_device(struct wlb_comm_trace *trace, const struct wlb_comm_event *event);

/* Calls that the device runs without the caller waiting for them (queued.h). The functions are called under the lock of
 * the trace, by any thread. */
struct wlb_comm_source {
	/* Returns 1 and the next event that has ended, 2 and the oldest one that has not, or 0 where there is none. */
	int (*next)(struct wlb_comm_source *source, struct wlb_comm_event *event);
	/* Returns 0, or -1 with the reason why the calls will not end. */
	int (*check)(struct wlb_comm_source *source, struct wlb_error *error);
	void (*abort)(struct wlb_comm_source *source);
	struct wlb_comm_source *after; /* the trace's */
};

/* The caller owns the source and must remove it before it frees it. */
void wlb_comm_trace_add_source(struct wlb_comm_trace *trace, struct wlb_comm_source *source);
void wlb_comm_trace_remove_source(struct wlb_comm_trace *trace, struct wlb_comm_source *source);
void wlb_comm_trace_lock(struct wlb_comm_trace *trace); /* for what a source's functions read */
void wlb_comm_trace_unlock(struct wlb_comm_trace *trace);
/* Moves the calls of sources that have ended to the ring. */
void wlb_comm_trace_poll(struct wlb_comm_trace *trace);
/* Returns 0, or -1 with the first failure that a source has found. */
int wlb_comm_trace_check(struct wlb_comm_trace *trace, struct wlb_error *error);
/* Ends the calls of all sources; the process must end afterwards. */
void wlb_comm_trace_abort(struct wlb_comm_trace *trace);

/* Returns 1 and the event while a call is in progress or waits for the device, else 0. Of calls of sources it is the
 * oldest one, in progress since any of them last ended: only where none ends do the ranks wait for each other. */
int wlb_comm_trace_waiting(struct wlb_comm_trace *trace, struct wlb_comm_event *event);
/* Copies up to `max` events, oldest first, beginning with number *next (0: the first of all), of those still in the
 * ring; moves *next past them. Returns how many. An event in progress is not copied. */
size_t wlb_comm_trace_read(struct wlb_comm_trace *trace, uint64_t *next, struct wlb_comm_event *events, size_t max);

/* The trace that all communicators split from one world share; it is valid until the world is closed. */
struct wlb_comm_trace *wlb_comm_get_trace(const struct wlb_comm *comm);

#endif
