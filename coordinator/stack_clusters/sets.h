/* The sets of ranks that may share a fault: nodes, groups of tp, cp, pp and dp, stages. */
#ifndef COORDINATOR_STACK_CLUSTERS_SETS_H
#define COORDINATOR_STACK_CLUSTERS_SETS_H

#include <jansson.h>

#include "libverdict/wlb_verdict.h"

/* Sets that outliers may share; the name of each says which it is. */
struct wlb_stack_sets {
	struct wlb_verdict_group *list; /* [count] */
	int32_t count;
	int32_t *members; /* of all sets */
	char (*names)[64];
};

/* Makes them from the ranks of a reply and its layout, which may be null; the sets have two members at least. Returns
 * -1 if out of memory. */
int wlb_stack_sets_make(const json_t *reply, struct wlb_stack_sets *sets);
void wlb_stack_sets_free(struct wlb_stack_sets *sets);

#endif
