/*
 * The trace of collectives: a ring of the newest events, and the event that is in progress. The training thread writes;
 * a watchdog or reporter thread may read at any time. A started call becomes an event when it is waited for, so events
 * are in the order in which they blocked the caller. A communicator of one rank records no events.
 */
#ifndef WORKER_COMM_COMM_TRACE_H
#define WORKER_COMM_COMM_TRACE_H

#include <stddef.h>
#include <stdint.h>

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

/* Returns 1 and the event while a call is in progress or waits for the device, else 0. */
int wlb_comm_trace_waiting(struct wlb_comm_trace *trace, struct wlb_comm_event *event);
/* Copies up to `max` events, oldest first, beginning with number *next (0: the first of all), of those still in the
 * ring; moves *next past them. Returns how many. An event in progress is not copied. */
size_t wlb_comm_trace_read(struct wlb_comm_trace *trace, uint64_t *next, struct wlb_comm_event *events, size_t max);

/* The trace that all communicators split from one world share; it is valid until the world is closed. */
struct wlb_comm_trace *wlb_comm_get_trace(const struct wlb_comm *comm);

#endif
