/* The body of POST /v1/runs/RUN/stacks: checked against bounds and the attempt. Pure: no I/O. */
#ifndef COORDINATOR_WLBD_API_REPORTS_STACKS_READ_H
#define COORDINATOR_WLBD_API_REPORTS_STACKS_READ_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/wlbd/attempts/attempt_nodes.h"
#include "libwlb/wlb.h"

enum {
	WLBD_STACKS_RANKS_MAX = 64, /* of a node */
	WLBD_STACKS_THREADS_MAX = 64,
	WLBD_STACKS_FRAMES_MAX = 64,
	WLBD_STACKS_FRAME_MAX = 200, /* bytes */
	WLBD_STACKS_CALLS_MAX = 32,
	WLBD_STACKS_RAS_LINES_MAX = 1024,
};

/* Texts and the array point into the body. */
struct wlbd_stacks_body {
	const char *attempt_id;
	const char *node;
	int64_t stacks_id;
	const json_t *ranks;
};

/* Returns -1 with the field that is wrong. */
int wlbd_stacks_read(const json_t *body, struct wlbd_stacks_body *stacks, struct wlb_error *error);

/* Returns -1 where the node, or one of the ranks, is not the attempt's. */
int wlbd_stacks_belong(const struct wlbd_stacks_body *stacks, const struct wlbd_attempt_nodes *nodes,
                       struct wlb_error *error);

/* Returns the ranks as compact JSON that has the known members and no others; the caller frees it. NULL if out of
 * memory. */
char *wlbd_stacks_text(const struct wlbd_stacks_body *stacks);

#endif
