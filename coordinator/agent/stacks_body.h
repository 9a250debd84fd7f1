/* The body of POST /v1/runs/RUN/stacks (docs/api.md): what wlb-stacks printed of each rank, and the rank's newest
 * calls. It has at most 256 KiB, of which each rank may take an equal part. */
#ifndef COORDINATOR_AGENT_STACKS_BODY_H
#define COORDINATOR_AGENT_STACKS_BODY_H

#include <jansson.h>

#include "coordinator/agent/trainers.h"
#include "coordinator/client/node_page.h"

enum {
	WLB_STACKS_BODY_BYTES = 256 * 1024,
	WLB_STACKS_RANKS = 64, /* of a node; of those beyond nothing is sent */
};

/* Returns the entry of a rank; the caller releases it. `printed` is the line of wlb-stacks for its process; where it is
 * NULL, wlb-stacks did not answer in time, and the entry has what the kernel says of the process. `ranks` is the number
 * that share the body, of which other_bytes are taken by what is not of ranks. What does not fit is omitted: the last
 * threads, then older calls, then the innermost frames. NULL if out of memory. */
json_t *wlb_stacks_rank(const json_t *printed, const struct wlb_agent_trainer *trainer,
                        const struct wlb_node_page *page, int ranks, size_t other_bytes);

/* Returns the body; `entries` is stolen. NULL if out of memory. */
char *wlb_stacks_body(const char *attempt_id, const char *node, json_int_t stacks_id, json_t *entries);

#endif
