/* Orders nodes by the tree of their switches. */
#include "libwlb/wlb.h"

#include <stdlib.h>

/* The limit of the depth is above that of any fabric; it bounds the use of the stack. */
enum { LEVELS_MAX = 64 };

/* The state of a depth-first traversal of the switch tree. */
struct walk {
	const struct wlb_topology *topology;
	int32_t nodes;
	int32_t placed;
	int32_t *order;
	int32_t *leaf;
	unsigned char *node_seen;
	unsigned char *switch_seen;
	struct wlb_error *error;
};

static const char *name_of(const struct wlb_switch *s)
{
	return s->name != NULL ? s->name : "?";
}

static int place_nodes(struct walk *walk, int32_t index)
{
	const struct wlb_switch *s = &walk->topology->switches[index];
	for (size_t i = 0; i < s->node_count; i++) {
		int32_t node = s->nodes[i];
		if (node < 0 || node >= walk->nodes)
			return wlb_fail(walk->error, "switch %s has node %d: nodes are 0 to %d", name_of(s), node,
			                walk->nodes - 1);
		if (walk->node_seen[node])
			return wlb_fail(walk->error,
			                "switch %s has node %d, that is under another switch too: name it once",
			                name_of(s), node);
		walk->node_seen[node] = 1;
		walk->order[walk->placed] = node;
		walk->leaf[walk->placed++] = index;
	}
	return 0;
}

static int descend(struct walk *walk, int32_t index, int level)
{
	const struct wlb_switch *s = &walk->topology->switches[index];
	if (walk->switch_seen[index])
		return wlb_fail(walk->error,
		                "switch %s is below two switches or below itself: name it once under one switch",
		                name_of(s));
	if (level == LEVELS_MAX)
		return wlb_fail(walk->error, "switch %s is on level %d: a tree has at most %d", name_of(s), level + 1,
		                LEVELS_MAX);
	walk->switch_seen[index] = 1;
	for (size_t i = 0; i < s->switch_count; i++)
		if (descend(walk, s->switches[i], level + 1) < 0)
			return -1;
	return place_nodes(walk, index);
}

/* Marks in `child` the switches that are below another one. */
static int mark_children(const struct wlb_topology *topology, unsigned char *child, struct wlb_error *error)
{
	for (size_t s = 0; s < topology->count; s++)
		for (size_t i = 0; i < topology->switches[s].switch_count; i++) {
			int32_t below = topology->switches[s].switches[i];
			if (below < 0 || (size_t)below >= topology->count)
				return wlb_fail(error, "switch %s has switch number %d: there are %zu switches",
				                name_of(&topology->switches[s]), below, topology->count);
			child[below] = 1;
		}
	return 0;
}

static int walk_all(struct walk *walk, const unsigned char *child)
{
	for (size_t s = 0; s < walk->topology->count; s++)
		if (!child[s] && descend(walk, (int32_t)s, 0) < 0)
			return -1;
	for (size_t s = 0; s < walk->topology->count; s++)
		if (!walk->switch_seen[s])
			return wlb_fail(walk->error, "switch %s is below itself: switches must form a tree",
			                name_of(&walk->topology->switches[s]));
	for (int32_t node = 0; node < walk->nodes; node++)
		if (!walk->node_seen[node]) {
			walk->order[walk->placed] = node;
			walk->leaf[walk->placed++] = -1;
		}
	return 0;
}

int wlb_topology_order(const struct wlb_topology *topology, int32_t nodes, int32_t *order, int32_t *leaf,
                       struct wlb_error *error)
{
	static const struct wlb_topology flat;
	if (nodes < 1)
		return wlb_fail(error, "%d nodes: there must be at least 1", nodes);
	if (topology == NULL)
		topology = &flat;
	struct walk walk = {.topology = topology, .nodes = nodes, .order = order, .leaf = leaf, .error = error};
	walk.node_seen = calloc((size_t)nodes, 1);
	walk.switch_seen = calloc(topology->count + 1, 1);
	unsigned char *child = calloc(topology->count + 1, 1);
	int result = -1;
	if (walk.node_seen == NULL || walk.switch_seen == NULL || child == NULL)
		wlb_fail(error, "out of memory for the order of %d nodes", nodes);
	else if (mark_children(topology, child, error) == 0)
		result = walk_all(&walk, child);
	free(walk.node_seen);
	free(walk.switch_seen);
	free(child);
	return result;
}
