#include "coordinator/wlbd/rules/evictions.h"

#include <string.h>

enum { MANY_NODES = 8 };

/* Ranks stood still at the same step on another node. */
static bool is_of_program(const struct wlbd_past_eviction *evictions, int count, int which)
{
	const struct wlbd_past_eviction *eviction = &evictions[which];
	for (int i = 0; i < count && eviction->stood_still && eviction->step >= 0; i++)
		if (evictions[i].stood_still && evictions[i].step == eviction->step &&
		    strcmp(evictions[i].node, eviction->node) != 0)
			return true;
	return false;
}

static int index_of(const char *const *nodes, int node_count, const char *name)
{
	for (int i = 0; i < node_count; i++)
		if (strcmp(nodes[i], name) == 0)
			return i;
	return -1;
}

int wlbd_most_left_out(int node_count)
{
	return node_count >= MANY_NODES ? node_count / 4 : node_count / 2;
}

void wlbd_evictions_mark(const struct wlbd_past_eviction *evictions, int count, const char *const *nodes,
                         int node_count, bool *evicted)
{
	int most = wlbd_most_left_out(node_count);
	for (int i = 0; i < node_count; i++)
		evicted[i] = false;
	for (int e = 0, marked = 0; e < count && marked < most; e++) {
		int node = index_of(nodes, node_count, evictions[e].node);
		if (node < 0 || evicted[node] || evictions[e].age_s > WLBD_EVICTION_LASTS_S ||
		    is_of_program(evictions, count, e))
			continue;
		evicted[node] = true;
		marked++;
	}
}
