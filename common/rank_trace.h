/*
 * What one rank does, in memory that other processes can read while the rank runs, is stuck, or has ended: its
 * activity, the state of its communicators, a ring of its newest calls, a ring of the calls that are chosen to be
 * reported with their times (common/call_choice.h), and a ring of the newest steps that the rank has ended.
 *
 * The threads of the rank write without locks, system calls or allocations; a reader never makes them wait. A reader in
 * another process must take what it reads for a claim of the rank: values are checked against the bounds here and
 * nothing else. Zeroed memory is an area that no rank has taken yet. Times are of CLOCK_MONOTONIC, which the processes
 * of a node share.
 */
#ifndef COMMON_RANK_TRACE_H
#define COMMON_RANK_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "common/step_ring.h"

enum {
	WLB_TRACE_EVENTS = 1024,
	WLB_TRACE_CHOSEN = 256,
	WLB_TRACE_GROUPS = 64, /* the last stands for all communicators beyond, and is named "others" */
	WLB_TRACE_NAME_SIZE = 16,
};

enum wlb_comm_kind {
	WLB_COMM_ALL_REDUCE,
	WLB_COMM_ALL_REDUCE_DOUBLE,
	WLB_COMM_REDUCE_SCATTER,
	WLB_COMM_ALL_GATHER,
	WLB_COMM_SEND,
	WLB_COMM_RECV,
};
enum { WLB_COMM_KINDS = WLB_COMM_RECV + 1 };
const char *wlb_comm_kind_name(enum wlb_comm_kind kind);

enum wlb_activity {
	WLB_ACTIVITY_STARTING,
	WLB_ACTIVITY_LOADING, /* waits for the documents of a step */
	WLB_ACTIVITY_COMPUTING,
	WLB_ACTIVITY_SAVING,
	WLB_ACTIVITY_EVALUATING,
	WLB_ACTIVITY_ENDING,
};
enum { WLB_ACTIVITIES = WLB_ACTIVITY_ENDING + 1 };
const char *wlb_activity_name(enum wlb_activity activity);

/* A call of a communicator. */
struct wlb_trace_event {
	enum wlb_comm_kind kind;
	int group;        /* number of the communicator in the area */
	uint64_t seq;     /* 1 for the first call of that communicator */
	uint64_t bytes;   /* of the local buffer */
	double entered_s; /* for a call that was started and is awaited later: when it was started */
	double blocked_s; /* when it began to block the caller */
	double left_s;    /* 0 while it is in progress */
};

/* What a check for silent data corruption has found: that this rank may have computed wrongly. */
struct wlb_trace_corruption {
	int64_t step; /* after which it was */
	int suspects; /* suspected ranks, of which one is at fault; this rank is among them */
	int first;    /* the first of them */
	int other;    /* a rank that computed other bits; the rank itself: it did so the second time */
};

struct wlb_rank_trace;

size_t wlb_rank_trace_bytes(void);

/* ---- for the rank ---- */
/* Takes the area for a rank. Returns 0, or -1 where another has taken it. */
int wlb_rank_trace_take(struct wlb_rank_trace *trace, int rank);
/* Empties the area of a rank, as it was when the rank took it. */
void wlb_rank_trace_clear(struct wlb_rank_trace *trace);
/* Returns the number of a communicator of that many ranks, or removes one, whose number is then used again. By one
 * thread at a time. The name is cut off at WLB_TRACE_NAME_SIZE - 1 bytes. */
int wlb_rank_trace_add_group(struct wlb_rank_trace *trace, const char *name, int ranks);
void wlb_rank_trace_remove_group(struct wlb_rank_trace *trace, int group);
void wlb_rank_trace_set_activity(struct wlb_rank_trace *trace, enum wlb_activity activity, double since_s);
/* The step in progress, and the work that is predicted for it, as in struct wlb_trace_step; 0: not known yet. */
void wlb_rank_trace_set_step(struct wlb_rank_trace *trace, int64_t step, double work);
/* A step has ended. The transfers are of communicators that exist. */
void wlb_rank_trace_add_step(struct wlb_rank_trace *trace, const struct wlb_trace_step *step);
/* Replaces what an earlier check has found. */
void wlb_rank_trace_set_corruption(struct wlb_rank_trace *trace, const struct wlb_trace_corruption *corruption);
/* In each window of time up to WLB_CALLS_CHOSEN_MOST calls of a communicator are chosen, from now on. */
void wlb_rank_trace_set_choice(struct wlb_rank_trace *trace, double window_s);
/* A call begins to block the caller, and the call ends. One thread calls these functions, for one blocking call at a
 * time. An ended call becomes an event of the ring, and may be chosen. */
void wlb_rank_trace_enter(struct wlb_rank_trace *trace, const struct wlb_trace_event *event);
void wlb_rank_trace_leave(struct wlb_rank_trace *trace, const struct wlb_trace_event *event);
/* The same thread waits, until it calls this with NULL, for the device to do the work that `event` needs before it can
 * start. It becomes no event of the ring. */
void wlb_rank_trace_wait_device(struct wlb_rank_trace *trace, const struct wlb_trace_event *event);
/* A call that does not block the caller begins, and has ended; by any thread. */
void wlb_rank_trace_started(struct wlb_rank_trace *trace, int group, uint64_t seq);
void wlb_rank_trace_ended(struct wlb_rank_trace *trace, const struct wlb_trace_event *event);

/* ---- for readers ---- */
/* Returns the rank that has taken the area, -1 where none has. */
int wlb_rank_trace_rank(const struct wlb_rank_trace *trace);
/* Returns the step in progress, and its work in *work, which may be any number. */
int64_t wlb_rank_trace_step(const struct wlb_rank_trace *trace, double *work);
/* Returns the activity, and since when in *since_s. */
enum wlb_activity wlb_rank_trace_activity(const struct wlb_rank_trace *trace, double *since_s);
/* Returns 1 and what the newest check that suspects the rank has found; 0: none does. */
int wlb_rank_trace_corruption(const struct wlb_rank_trace *trace, struct wlb_trace_corruption *corruption);
struct wlb_trace_group {
	char name[WLB_TRACE_NAME_SIZE];
	int ranks;              /* 0: there is none of this number */
	uint64_t entered, left; /* the greatest number of a call that began, and of one that ended; left <= entered */
};
/* Copies the communicators, by their numbers. Returns one more than the greatest number. */
int wlb_rank_trace_groups(const struct wlb_rank_trace *trace, struct wlb_trace_group groups[WLB_TRACE_GROUPS]);
/* Returns 1 and the call that blocks the rank, or that waits for the device, else 0. */
int wlb_rank_trace_blocked(const struct wlb_rank_trace *trace, struct wlb_trace_event *event);
/* Copies up to `max` of the calls that are still in the ring, in the order in which they ended, beginning with number
 * *next (0: the first of all); moves *next past them. Returns how many. */
size_t wlb_rank_trace_read(const struct wlb_rank_trace *trace, uint64_t *next, struct wlb_trace_event *events,
                           size_t max);
/* Copies calls that were chosen, in the same way. A *next that the ring has not reached is of an earlier rank in this
 * memory: then it begins with the oldest. */
size_t wlb_rank_trace_read_chosen(const struct wlb_rank_trace *trace, uint64_t *next, struct wlb_trace_event *events,
                                  size_t max);
/* Copies the steps that have ended: wlb_step_ring_read. The number of a group may be any. */
size_t wlb_rank_trace_read_steps(const struct wlb_rank_trace *trace, uint64_t *next, struct wlb_trace_step *steps,
                                 size_t max);

#endif
