#include "coordinator/wlb/run/plan/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_text.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/slurm/topology.h"
#include "coordinator/slurm/topology_order.h"
#include "coordinator/wlb/run/state/print.h"

/* Of a record: a plan has at most 16 KiB. */
enum { SWITCHES_RECORDED = 32, NODES_TEXT_BYTES = 160 };

/* Adds a node under `leaf` (NULL: none) to the switches; `attempt` has memory for one switch a node. */
static void add_to_switches(struct wlb_attempt *attempt, const char *leaf)
{
	struct wlb_run_switch *last = attempt->switch_count > 0 ? &attempt->switches[attempt->switch_count - 1] : NULL;
	const char *name = leaf != NULL ? leaf : "";
	if (last == NULL || strcmp(last->name, name) != 0) {
		last = &attempt->switches[attempt->switch_count++];
		snprintf(last->name, sizeof(last->name), "%s", name);
		last->node_count = 0;
	}
	last->node_count++;
}

/* Replaces the attempt's nodes by those of `order`. Returns -1 if out of memory. */
static int reorder(struct wlb_attempt *attempt, const int *order, const char *const *leaf)
{
	size_t count = (size_t)attempt->node_count;
	char **nodes = calloc(count + 1, sizeof(*nodes));
	attempt->switches = calloc(count + 1, sizeof(*attempt->switches));
	if (nodes == NULL || attempt->switches == NULL) {
		free(nodes);
		return -1;
	}
	for (size_t i = 0; i < count; i++) {
		nodes[i] = attempt->nodes[order[i]];
		add_to_switches(attempt, leaf[i]);
	}
	free(attempt->nodes); /* the names have moved */
	attempt->nodes = nodes;
	return 0;
}

void wlb_run_place_nodes(struct wlb_attempt *attempt)
{
	struct wlb_topology_file topology;
	struct wlb_error error;
	size_t count = (size_t)attempt->node_count;
	if (attempt->switches != NULL)
		return;
	int *order = calloc(count + 1, sizeof(*order));
	const char **leaf = calloc(count + 1, sizeof(*leaf));
	int rc = wlb_slurm_topology(&topology, &error);
	if (rc == 0 && (order == NULL || leaf == NULL))
		rc = wlb_fail(&error, "out of memory for the order of %d nodes", attempt->node_count);
	if (rc == 0)
		rc = wlb_topology_order_names(&topology, (const char *const *)attempt->nodes, attempt->node_count,
		                              order, leaf, &error);
	if (rc == 0)
		rc = reorder(attempt, order, leaf);
	if (rc != 0)
		wlb_run_print("the nodes keep Slurm's order: their switches are not known: %s", error.message);
	wlb_topology_file_free(&topology);
	free(leaf);
	free(order);
}

void wlb_run_read_switches(const json_t *list, struct wlb_attempt *attempt)
{
	size_t count = json_array_size(list);
	int64_t nodes = 0;
	attempt->switches = list != NULL ? calloc(count + 1, sizeof(*attempt->switches)) : NULL;
	for (size_t i = 0; attempt->switches != NULL && i < count; i++) {
		const json_t *entry = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(entry, "name"));
		int64_t below = json_integer_value(json_object_get(entry, "nodes"));
		struct wlb_run_switch *at = &attempt->switches[i];
		if (name == NULL || below < 1 || below > attempt->node_count - nodes)
			break;
		snprintf(at->name, sizeof(at->name), "%s", name);
		at->node_count = (int)below;
		attempt->switch_count++;
		nodes += below;
	}
	if (attempt->switches == NULL || nodes == attempt->node_count)
		return;
	free(attempt->switches);
	attempt->switches = NULL;
	attempt->switch_count = 0;
}

/* Returns how many of the nodes from `first` on are under the switch: nodes at the end may have been left out. */
static int nodes_under(const struct wlb_attempt *attempt, const struct wlb_run_switch *at, int first)
{
	int left = attempt->node_count - first;
	return at->node_count < left ? at->node_count : left;
}

static json_t *switch_json(const struct wlb_attempt *attempt, const char *name, int first, int count)
{
	char *nodes = wlb_hostlist_fold(attempt->nodes + first, count, NULL);
	if (nodes != NULL && strlen(nodes) > NODES_TEXT_BYTES)
		strcpy(nodes + NODES_TEXT_BYTES - 3, "...");
	int ranks = 0;
	for (int i = first; i < first + count; i++)
		ranks += wlb_attempt_tasks_on(attempt, i);
	json_t *object = json_pack("{s:o, s:o, s:i, s:i}", "switch", wlb_json_text(name), "nodes",
	                           wlb_json_text(nodes != NULL ? nodes : "?"), "first_rank",
	                           first * attempt->tasks_per_node, "ranks", ranks);
	free(nodes);
	return object;
}

static json_t *placement_json(const struct wlb_attempt *attempt)
{
	json_t *list = json_array();
	for (int i = 0, first = 0; i < attempt->switch_count && i < SWITCHES_RECORDED && first < attempt->node_count;
	     i++) {
		const struct wlb_run_switch *at = &attempt->switches[i];
		int count = nodes_under(attempt, at, first);
		json_array_append_new(list, switch_json(attempt, at->name, first, count));
		first += count;
	}
	return list;
}

/* Whether a node is under a switch: nodes without one are last. */
static bool has_switch(const struct wlb_attempt *attempt)
{
	return attempt->switch_count > 0 && attempt->switches[0].name[0] != '\0';
}

void wlb_run_record_placement(struct wlb_attempt *attempt)
{
	const struct wlb_layout *l = &attempt->layout;
	if (!attempt->has_layout || !has_switch(attempt))
		return;
	if (attempt->plan == NULL)
		attempt->plan = json_pack("{s:{s:i, s:i, s:i, s:i}}", "layout", "tp", l->tp, "cp", l->cp, "pp", l->pp,
		                          "dp", l->dp);
	if (attempt->plan != NULL)
		json_object_set_new(attempt->plan, "placement", placement_json(attempt));
}

int wlb_run_topology_make(const struct wlb_attempt *attempt, struct wlb_run_topology *made, struct wlb_error *error)
{
	if (!has_switch(attempt))
		return 0;
	made->switches = calloc((size_t)attempt->switch_count, sizeof(*made->switches));
	made->nodes = calloc((size_t)attempt->node_count + 1, sizeof(*made->nodes));
	if (made->switches == NULL || made->nodes == NULL)
		return wlb_fail(error, "out of memory for %d switches", attempt->switch_count);
	for (int i = 0; i < attempt->node_count; i++)
		made->nodes[i] = i;
	for (int i = 0, first = 0; i < attempt->switch_count; i++) {
		const struct wlb_run_switch *at = &attempt->switches[i];
		int count = nodes_under(attempt, at, first);
		if (at->name[0] == '\0' || count == 0)
			break;
		made->switches[made->topology.count++] = (struct wlb_switch){
			.name = at->name, .nodes = made->nodes + first, .node_count = (size_t)count};
		first += count;
	}
	made->topology.switches = made->switches;
	return 0;
}

void wlb_run_topology_free(struct wlb_run_topology *made)
{
	free(made->switches);
	free(made->nodes);
	*made = (struct wlb_run_topology){0};
}
