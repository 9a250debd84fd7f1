#include "coordinator/slurm/topology_order.h"

#include <stdlib.h>
#include <string.h>

struct wanted {
	const char *name;
	int index;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct wanted *)a)->name, ((const struct wanted *)b)->name);
}

/* The places of the nodes that are wanted, in the order of all nodes. */
struct places {
	int *order;
	const char **leaf;
	char *is_placed; /* [count] by index into the names */
	int placed;
};

static void place_known(const struct wlb_topology_file *topology, const int32_t *all, const int32_t *leaf_of,
                        const struct wanted *wanted, int count, struct places *places)
{
	for (int32_t i = 0; i < topology->node_count; i++) {
		const struct wanted key = {.name = topology->nodes[all[i]]};
		const struct wanted *found = bsearch(&key, wanted, (size_t)count, sizeof(key), by_name);
		if (found == NULL || places->is_placed[found->index])
			continue;
		places->is_placed[found->index] = 1;
		places->order[places->placed] = found->index;
		places->leaf[places->placed++] = leaf_of[i] >= 0 ? topology->names[leaf_of[i]] : NULL;
	}
}

static void place_rest(int count, struct places *places)
{
	for (int i = 0; i < count; i++)
		if (!places->is_placed[i]) {
			places->order[places->placed] = i;
			places->leaf[places->placed++] = NULL;
		}
}

/* Places the nodes that the topology has. */
static int place_by_topology(const struct wlb_topology_file *topology, const struct wanted *wanted, int count,
                             struct places *places, struct wlb_error *error)
{
	size_t all_count = (size_t)topology->node_count;
	if (all_count == 0)
		return 0;
	int32_t *all = calloc(2 * all_count, sizeof(*all));
	int rc = all != NULL
	                 ? wlb_topology_order(&topology->topology, topology->node_count, all, all + all_count, error)
	                 : wlb_fail(error, "out of memory for the order of %zu nodes", all_count);
	if (rc == 0)
		place_known(topology, all, all + all_count, wanted, count, places);
	free(all);
	return rc;
}

int wlb_topology_order_names(const struct wlb_topology_file *topology, const char *const *names, int count, int *order,
                             const char **leaf, struct wlb_error *error)
{
	struct wanted *wanted = calloc((size_t)count + 1, sizeof(*wanted));
	struct places places = {.order = order, .leaf = leaf, .is_placed = calloc((size_t)count + 1, 1)};
	int rc = -1;
	if (wanted == NULL || places.is_placed == NULL) {
		wlb_fail(error, "out of memory for the order of %d nodes", count);
	} else {
		for (int i = 0; i < count; i++)
			wanted[i] = (struct wanted){names[i], i};
		qsort(wanted, (size_t)count, sizeof(*wanted), by_name);
		rc = place_by_topology(topology, wanted, count, &places, error);
		if (rc == 0)
			place_rest(count, &places);
	}
	free(places.is_placed);
	free(wanted);
	return rc;
}
