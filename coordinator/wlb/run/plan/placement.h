/* The placement of an attempt: its nodes in the order in which ranks fill them, and the switches that they are under.
 */
#ifndef COORDINATOR_WLB_RUN_PLAN_PLACEMENT_H
#define COORDINATOR_WLB_RUN_PLAN_PLACEMENT_H

#include <jansson.h>

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Unless the coordinator has done so: orders the attempt's nodes so that the nodes of a switch are neighbours, and sets
 * the attempt's switches, by what slurmctld says. Where slurmctld does not answer, the nodes keep their order and one
 * line says so. */
void wlb_run_place_nodes(struct wlb_attempt *attempt);

/* Reads the switches of the coordinator's reply: [{"name": "s1", "nodes": 2}, ...] for the nodes of the attempt in
 * their order; "" names no switch. NULL, and a list that does not cover the nodes, leave them
 * unknown. */
void wlb_run_read_switches(const json_t *list, struct wlb_attempt *attempt);

/* Adds "placement" to the record of the attempt's plan, and makes a record with the layout alone where nothing was
 * planned: [{"switch": "s1", "nodes": "n[1,3]", "first_rank": 0, "ranks": 4}, ...] of the first 32 switches. Adds
 * nothing where no node is under a switch. */
void wlb_run_record_placement(struct wlb_attempt *attempt);

/* The switches as the planner takes them, each with its nodes by their index in the attempt. Starts zeroed; free it in
 * any case. Returns -1 if out of memory; the topology is empty where no node is under a switch. */
struct wlb_run_topology {
	struct wlb_topology topology;
	struct wlb_switch *switches;
	int32_t *nodes;
};
int wlb_run_topology_make(const struct wlb_attempt *attempt, struct wlb_run_topology *made, struct wlb_error *error);
void wlb_run_topology_free(struct wlb_run_topology *made);

#endif
