/* What wlbd knows of the nodes of an attempt from Slurm, as the reply has it; no I/O. */
#ifndef COORDINATOR_WLBD_API_ATTEMPTS_ATTEMPT_FACTS_H
#define COORDINATOR_WLBD_API_ATTEMPTS_ATTEMPT_FACTS_H

#include <jansson.h>

#include "coordinator/wlbd/api/attempts/candidate_nodes.h"
#include "coordinator/wlbd/slurm/nodes.h"

/* The switches of the nodes that are used, in their order: [{"name": "s1", "nodes": 2}, ...]; "" names no switch. */
json_t *wlbd_switches_json(const struct wlbd_candidate_nodes *candidates, const struct wlbd_decision *decision);

/* The types of their GPUs in Slurm's GRES, each with its first node: [{"type": "h100", "node": "n1"}, ...], 64 at most.
 */
json_t *wlbd_gpu_types_json(const struct wlbd_nodes *nodes, const struct wlbd_candidate_nodes *candidates,
                            const struct wlbd_decision *decision);

#endif
