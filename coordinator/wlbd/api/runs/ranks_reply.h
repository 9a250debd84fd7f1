/* The reply to GET /v1/runs/RUN/ranks: the facts of the run, which the database has, and what its ranks do. No I/O. */
#ifndef COORDINATOR_WLBD_API_RUNS_RANKS_REPLY_H
#define COORDINATOR_WLBD_API_RUNS_RANKS_REPLY_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/wlbd/attempts/attempt_nodes.h"
#include "coordinator/wlbd/detection/activities.h"
#include "coordinator/wlbd/detection/detection.h"
#include "coordinator/wlbd/detection/rank_processes.h"

/* Of the array 'ranks'; ranks that do not fit are counted in 'left_out'. 16,384 ranks with eight groups take 5 MB. */
enum { WLBD_RANKS_REPLY_MAX_BYTES = 16 << 20 };

/* What the ranks of an attempt do; a member is NULL where it is not known, as all are of an attempt that is not in
 * memory. */
struct wlbd_known_ranks {
	const struct wlbd_attempt_nodes *nodes;
	const struct wlbd_activities *activities;
	const struct wlbd_detection *detection;      /* of its steps and calls */
	const struct wlbd_rank_processes *processes; /* of a trainer that reports nothing */
	int64_t now_ms;
};

/* `text` is a JSON object with 'nodes' and 'world_size', and `facts` the same, parsed; the members of the ranks are
 * added to it. Returns a text that the caller frees; NULL if out of memory. */
char *wlbd_ranks_reply(const char *text, const json_t *facts, const struct wlbd_known_ranks *known);

#endif
