/* The nodes that the next attempt of a run could use, with the losses and crashes on each in the run's history. Pure:
 * no I/O. */
#ifndef COORDINATOR_WLBD_REQUESTS_CANDIDATES_H
#define COORDINATOR_WLBD_REQUESTS_CANDIDATES_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/wlbd/rules/decision.h"

struct wlbd_candidates {
	struct wlbd_candidate_node *list; /* in the order of the names; names point into these */
	int count;
	int64_t program_step; /* the program fails there on any node; -1: no such step is known */
};

/* `names` is the array of the body, `history` what wlb_run_history() of the schema returns. Returns -1 if out of
 * memory. Free with wlbd_candidates_free. */
int wlbd_candidates_make(const json_t *names, const json_t *history, struct wlbd_candidates *candidates);
void wlbd_candidates_free(struct wlbd_candidates *candidates); /* leaves none */

#endif
