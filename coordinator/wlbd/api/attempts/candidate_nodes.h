/* Lists the nodes that the next attempt of a run could use, with the losses and crashes on each in the run's history;
 * no I/O. */
#ifndef COORDINATOR_WLBD_API_ATTEMPTS_CANDIDATE_NODES_H
#define COORDINATOR_WLBD_API_ATTEMPTS_CANDIDATE_NODES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "coordinator/slurm/topology_text.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/slurm/nodes.h"

struct wlbd_candidate_nodes {
	struct wlbd_candidate_node *list; /* in the order of the names, or of the switches; names point into these */
	int count;
	int64_t program_step; /* as in struct wlbd_decision_facts */
};

struct wlbd_nodes_rules {
	bool excludes_crashed; /* else no node has failed, by crashes or losses */
	bool avoids_nodes;     /* else no node is avoided */
};

/* `names` is the array of the body, each once, `history` what wlb_run_past() of the schema returns, of which texts are
 * referenced. Returns -1 if out of memory. Free with wlbd_candidate_nodes_free. */
int wlbd_candidate_nodes_make(const json_t *names, const json_t *history, struct wlbd_nodes_rules rules,
                              struct wlbd_candidate_nodes *candidates);
/* Orders them so that the nodes of a switch are neighbours. Returns -1 with the reason; the order is then unchanged. */
int wlbd_candidate_nodes_order(struct wlbd_candidate_nodes *candidates, const struct wlb_topology_file *topology,
                               struct wlb_error *error);
/* Returns how many of them the job holds and could work, whether the next attempt uses them or not. */
int wlbd_candidate_nodes_held(const struct wlbd_candidate_nodes *candidates);
void wlbd_candidate_nodes_free(struct wlbd_candidate_nodes *candidates); /* leaves an empty list */

/* The switches of the nodes that are used, in their order: [{"name": "s1", "nodes": 2}, ...]; "" names no switch. */
json_t *wlbd_switches_json(const struct wlbd_candidate_nodes *candidates, const struct wlbd_decision *decision);

/* The types of their GPUs in Slurm's GRES, each with its first node: [{"type": "h100", "node": "n1"}, ...], 64 at most.
 */
json_t *wlbd_gpu_types_json(const struct wlbd_nodes *nodes, const struct wlbd_candidate_nodes *candidates,
                            const struct wlbd_decision *decision);

#endif
