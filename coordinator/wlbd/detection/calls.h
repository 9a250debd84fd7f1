/*
 * Calls of communicators of which ranks have reported the times, until all members of a call have. No I/O.
 */
#ifndef COORDINATOR_WLBD_DETECTION_CALLS_H
#define COORDINATOR_WLBD_DETECTION_CALLS_H

#include <stdbool.h>

#include "coordinator/wlbd/detection/rank_call.h"
#include "libverdict/wlb_verdict.h"

struct wlbd_calls;

/* A call of which several members have reported, in the order of the members of its group; NaN: the member has not, or
 * had started the call before it waited for it, so that its times say neither when it came nor when the call ended. */
struct wlbd_seen_call {
	int32_t group;
	uint64_t seq;
	double bytes;
	const double *entered_s, *blocked_s, *left_s;
};

/* By the clock of the rank. */
struct wlbd_call_times {
	double entered_s; /* when it was started */
	double blocked_s; /* when the rank began to wait for it */
	double left_s;
};

struct wlbd_calls_taker {
	void *context;
	void (*take_collective)(void *context, const struct wlbd_seen_call *call);
	/* Of an edge of a pipeline: as the sender saw it, and the receiver. */
	void (*take_message)(void *context, int32_t group, double bytes, const struct wlbd_call_times ends[2]);
};

/* Returns NULL if out of memory. The world must outlive it. */
struct wlbd_calls *wlbd_calls_new(const struct wlb_verdict_world *world);
size_t wlbd_calls_bytes(const struct wlb_verdict_world *world); /* of memory that it holds */
void wlbd_calls_free(struct wlbd_calls *calls);                 /* NULL allowed */

/* Takes what a member of a group reports of a call. Where all members have reported it, or so many others have begun
 * since that it is given up and two members have, `taker` gets it. */
void wlbd_calls_add(struct wlbd_calls *calls, int32_t group, int32_t member, const struct wlbd_rank_call *call,
                    const struct wlbd_calls_taker *taker);

/* Whether a rank waited for a call as soon as it had started it. */
bool wlbd_call_is_awaited_at_once(double entered_s, double blocked_s);

#endif
