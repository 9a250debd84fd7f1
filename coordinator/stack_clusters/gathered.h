/* The stacks of a run's ranks as the coordinator replies with them, and their clusters. */
#ifndef COORDINATOR_STACK_CLUSTERS_GATHERED_H
#define COORDINATOR_STACK_CLUSTERS_GATHERED_H

#include <jansson.h>

#include "coordinator/stack_clusters/sets.h"
#include "libverdict/wlb_verdict.h"
#include "libwlb/wlb.h"

struct wlb_gathered {
	const json_t *reply; /* to GET /v1/runs/RUN/stacks; the caller's */
	const json_t *ranks; /* of the reply */
	int32_t count;
	struct wlb_verdict_stack *stacks; /* [count] of the thread of each rank that is likely to train */
	const char **frames;              /* of all stacks */
	char (*states)[96];               /* [count] in place of frames, where there is no stack */
	struct wlb_stack_sets sets;
	struct wlb_verdict_clusters *clusters;
};

/* Reads and clusters the reply, which outlives the result; wlb_gathered_free frees it in any case. Returns -1 where the
 * reply is not as docs/api.md has it, or if out of memory. */
int wlb_gathered_read(const json_t *reply, struct wlb_gathered *gathered, struct wlb_error *error);
void wlb_gathered_free(struct wlb_gathered *gathered);

/* Writes a frame without the offset in its function, which differs between the ranks of a cluster. The line of source,
 * where there is one, is that of one rank. */
void wlb_gathered_frame(const char *frame, char *text, size_t size);

/* The entry of `ranks` of a rank; NULL where it has none. */
const json_t *wlb_gathered_rank(const struct wlb_gathered *gathered, int32_t rank);

#endif
