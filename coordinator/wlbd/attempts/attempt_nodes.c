#include "coordinator/wlbd/attempts/attempt_nodes.h"

#include <stdlib.h>

#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/http/fields.h"

/* They are indexes into started_on, and so are forgotten with it. */
static void clear_ranks(struct wlbd_attempt_nodes *nodes)
{
	free(nodes->node_of_rank);
	free(nodes->ranks_of_node);
	nodes->node_of_rank = NULL;
	nodes->ranks_of_node = NULL;
	nodes->mapped_ranks = 0;
}

static void give_back(struct wlbd_attempt_nodes *nodes)
{
	if (nodes->budget != NULL)
		wlbd_budget_give(nodes->budget, nodes->uid, nodes->charged_bytes);
	nodes->charged_bytes = 0;
}

/* In place of what was charged before. */
static int charge(struct wlbd_attempt_nodes *nodes, size_t bytes)
{
	if (nodes->budget == NULL)
		return 0;
	if (wlbd_budget_take(nodes->budget, nodes->uid, bytes) != WLBD_BUDGET_TAKEN)
		return -1;
	give_back(nodes);
	nodes->charged_bytes = bytes;
	return 0;
}

static bool are_too_many(const struct wlbd_attempt_nodes *nodes, const struct wlbd_names *names)
{
	return names->count > (nodes->allocation_known ? nodes->allocation.count : WLBD_CLAIMED_NODES_MAX);
}

/* Takes `names` with as many ranks on them. */
static void take_names(struct wlbd_attempt_nodes *nodes, const struct wlbd_names *names, int world_size)
{
	clear_ranks(nodes);
	wlbd_names_free(&nodes->started_on);
	nodes->started_on = *names;
	nodes->world_size = world_size;
}

int wlbd_attempt_nodes_set(struct wlbd_attempt_nodes *nodes, const json_t *list, int world_size)
{
	struct wlbd_names names = {0};
	if (wlbd_names_from_json(&names, list) != 0 || are_too_many(nodes, &names) ||
	    charge(nodes, wlbd_names_bytes(&names)) != 0) {
		wlbd_names_free(&names);
		return -1;
	}
	take_names(nodes, &names, world_size);
	return 0;
}

int wlbd_attempt_nodes_set_ranks(struct wlbd_attempt_nodes *nodes, const json_t *node_of_rank)
{
	size_t ranks = json_array_size(node_of_rank);
	struct wlbd_names names = {0};
	int *indexes = NULL, *counts = NULL;
	if (wlbd_names_from_json(&names, node_of_rank) == 0 && !are_too_many(nodes, &names)) {
		indexes = calloc(ranks + 1, sizeof(*indexes));
		counts = calloc((size_t)names.count + 1, sizeof(*counts));
	}
	if (indexes == NULL || counts == NULL ||
	    charge(nodes, wlbd_names_bytes(&names) + (ranks + (size_t)names.count) * sizeof(int)) != 0) {
		wlbd_names_free(&names);
		free(indexes);
		free(counts);
		return -1;
	}
	take_names(nodes, &names, (int)ranks);
	for (size_t i = 0; i < ranks; i++) {
		const char *name = json_string_value(json_array_get(node_of_rank, i));
		indexes[i] = wlbd_names_find(&nodes->started_on, name);
		counts[indexes[i]]++;
	}
	nodes->node_of_rank = indexes;
	nodes->ranks_of_node = counts;
	nodes->mapped_ranks = (int)ranks;
	return 0;
}

int wlbd_attempt_nodes_set_allocation(struct wlbd_attempt_nodes *nodes, const struct wlb_slurm_job *job)
{
	if (!job->running || job->nodes[0] == '\0')
		return 0;
	if (wlbd_names_from_hostlist(&nodes->allocation, job->nodes) != 0)
		return -1;
	nodes->allocation_known = true;
	return 0;
}

void wlbd_attempt_nodes_free(struct wlbd_attempt_nodes *nodes)
{
	wlbd_names_free(&nodes->started_on);
	wlbd_names_free(&nodes->allocation);
	clear_ranks(nodes);
	give_back(nodes);
}

bool wlbd_attempt_nodes_may_record(const struct wlbd_attempt_nodes *nodes, const char *node)
{
	return nodes->started_on.count == 0 || wlbd_attempt_nodes_allocated(nodes, node) ||
	       wlbd_names_find(&nodes->started_on, node) >= 0;
}

const char *wlbd_attempt_nodes_of_rank(const struct wlbd_attempt_nodes *nodes, int rank)
{
	return rank >= 0 && rank < nodes->mapped_ranks ? nodes->started_on.list[nodes->node_of_rank[rank]] : NULL;
}

bool wlbd_attempt_nodes_confirmed(const struct wlbd_attempt_nodes *nodes, const char *node)
{
	return nodes->allocation_known && wlbd_names_find(&nodes->allocation, node) >= 0;
}

bool wlbd_attempt_nodes_allocated(const struct wlbd_attempt_nodes *nodes, const char *node)
{
	return !nodes->allocation_known || wlbd_attempt_nodes_confirmed(nodes, node);
}

bool wlbd_attempt_nodes_have(const struct wlbd_attempt_nodes *nodes, const char *node)
{
	return wlbd_names_find(&nodes->started_on, node) >= 0 && wlbd_attempt_nodes_allocated(nodes, node);
}

bool wlbd_attempt_nodes_may_have(const struct wlbd_attempt_nodes *nodes, const char *node)
{
	return (nodes->started_on.count == 0 || wlbd_names_find(&nodes->started_on, node) >= 0) &&
	       wlbd_attempt_nodes_allocated(nodes, node);
}

int wlbd_attempt_nodes_max(const struct wlbd_attempt_nodes *nodes)
{
	if (nodes->started_on.count > 0)
		return nodes->started_on.count;
	return nodes->allocation_known ? nodes->allocation.count : WLBD_CLAIMED_NODES_MAX;
}

int wlbd_attempt_nodes_ranks_max(const struct wlbd_attempt_nodes *nodes, const char *node)
{
	int place = wlbd_names_find(&nodes->started_on, node);
	if (nodes->ranks_of_node != NULL && place >= 0)
		return nodes->ranks_of_node[place];
	bool few = nodes->world_size > 0 && nodes->world_size < WLBD_NODE_RANKS_MAX;
	return few ? nodes->world_size : WLBD_NODE_RANKS_MAX;
}

bool wlbd_attempt_nodes_may_run_at(const struct wlbd_attempt_nodes *nodes, int place, int64_t rank)
{
	if (rank < 0 || (nodes->world_size > 0 && rank >= nodes->world_size))
		return false;
	return nodes->mapped_ranks == 0 || (rank < nodes->mapped_ranks && nodes->node_of_rank[rank] == place);
}

bool wlbd_attempt_nodes_may_run(const struct wlbd_attempt_nodes *nodes, const char *node, int64_t rank)
{
	return wlbd_attempt_nodes_may_run_at(nodes, wlbd_names_find(&nodes->started_on, node), rank);
}
