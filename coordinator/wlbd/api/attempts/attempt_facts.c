#include "coordinator/wlbd/api/attempts/attempt_facts.h"

#include <stdbool.h>
#include <string.h>

#include "common/json_text.h"

enum { TYPES_MOST = 64 };

static void add_switch(json_t *list, const char *leaf, int nodes)
{
	json_array_append_new(list, json_pack("{s:o, s:i}", "name", wlb_json_text(leaf), "nodes", nodes));
}

json_t *wlbd_switches_json(const struct wlbd_candidate_nodes *candidates, const struct wlbd_decision *decision)
{
	json_t *list = json_array();
	const char *last = NULL;
	int nodes = 0;
	for (int i = 0; i < decision->use_count; i++) {
		const char *leaf = candidates->list[decision->use[i]].leaf;
		leaf = leaf != NULL ? leaf : "";
		if (last != NULL && strcmp(last, leaf) != 0) {
			add_switch(list, last, nodes);
			nodes = 0;
		}
		last = leaf;
		nodes++;
	}
	if (last != NULL)
		add_switch(list, last, nodes);
	return list;
}

static bool has_type(const json_t *list, const char *type)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "type")), type) == 0)
			return true;
	return false;
}

json_t *wlbd_gpu_types_json(const struct wlbd_nodes *nodes, const struct wlbd_candidate_nodes *candidates,
                            const struct wlbd_decision *decision)
{
	json_t *list = json_array();
	for (int i = 0; i < decision->use_count && json_array_size(list) < TYPES_MOST; i++) {
		const struct wlbd_node *node = wlbd_nodes_find(nodes, candidates->list[decision->use[i]].name);
		json_t *entry = NULL;
		if (node != NULL && node->gpu_type[0] != '\0' && !has_type(list, node->gpu_type))
			entry = json_pack("{s:o, s:o}", "type", wlb_json_text(node->gpu_type), "node",
			                  wlb_json_text(node->name));
		if (entry != NULL)
			json_array_append_new(list, entry);
	}
	return list;
}
