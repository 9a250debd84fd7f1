#include "coordinator/wlbd/rules/evictions.h"

#include <string.h>

#include "coordinator/wlbd/rules/name_index.h"

enum { MANY_NODES = 8 };

/* Ranks hung at the same step on another node. */
static bool is_of_program(const struct wlbd_past_eviction *evictions, int count, int which)
{
	const struct wlbd_past_eviction *eviction = &evictions[which];
	for (int i = 0; i < count && eviction->stood_still && eviction->step >= 0; i++)
		if (evictions[i].stood_still && evictions[i].step == eviction->step &&
		    strcmp(evictions[i].node, eviction->node) != 0)
			return true;
	return false;
}

int wlbd_excluded_max(int node_count)
{
	return node_count >= MANY_NODES ? node_count / 4 : node_count / 2;
}

int wlbd_evictions_mark(const struct wlbd_past_eviction *evictions, int count, const char *const *nodes, int node_count,
                        const bool *is_excluded, bool *evicted)
{
	struct wlbd_name_index index;
	int excluded = 0, max = wlbd_excluded_max(node_count);
	if (wlbd_name_index_make(&index, nodes, node_count) != 0)
		return -1;
	for (int i = 0; i < node_count; i++) {
		evicted[i] = false;
		excluded += is_excluded != NULL && is_excluded[i];
	}
	for (int e = 0; e < count; e++) {
		int node = wlbd_name_index_find(&index, evictions[e].node);
		if (node < 0 || evicted[node] || evictions[e].age_s > WLBD_EVICTION_LASTS_S ||
		    is_of_program(evictions, count, e))
			continue;
		bool is_usable = is_excluded == NULL || !is_excluded[node];
		evicted[node] = !is_usable || excluded < max;
		excluded += is_usable && evicted[node];
	}
	wlbd_name_index_free(&index);
	return 0;
}
