#include "coordinator/wlbd/api/attempts/candidate_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "common/json_text.h"
#include "coordinator/slurm/topology_order.h"
#include "coordinator/wlbd/rules/avoidance.h"
#include "coordinator/wlbd/rules/crashes.h"
#include "coordinator/wlbd/rules/evictions.h"
#include "coordinator/wlbd/verdicts/past_evictions.h"

enum { TYPES_MAX = 64 };

/* Fills crashes[] with the newest first. Returns their number. */
static int read_crashes(const json_t *history, struct wlbd_crash crashes[WLBD_CRASHES_MAX])
{
	const json_t *list = json_object_get(history, "crashes");
	int count = 0;
	for (size_t i = 0; i < json_array_size(list) && count < WLBD_CRASHES_MAX; i++) {
		const json_t *entry = json_array_get(list, i);
		crashes[count++] = (struct wlbd_crash){
			.node = json_string_value(json_object_get(entry, "node")),
			.step = json_integer_value(json_object_get(entry, "step")),
			.age_s = json_number_value(json_object_get(entry, "age_s")),
			.in_row = json_is_true(json_object_get(entry, "in_row")),
			.later_progress = json_integer_value(json_object_get(entry, "later_progress")),
		};
	}
	return count;
}

static const char *why_failed(const struct wlbd_suspect *node)
{
	if (node->losses > WLBD_NODE_LOSSES_MAX)
		return "was lost twice";
	return node->suspected ? "failed again and again" : NULL;
}

/* Marks the failed nodes with the most failures, as many as may be excluded. */
static int mark_heaviest(struct wlbd_candidate_nodes *candidates, const struct wlbd_suspect *nodes)
{
	struct wlbd_known_node *known = calloc((size_t)candidates->count + 1, sizeof(*known));
	if (known == NULL)
		return -1;
	for (int i = 0; i < candidates->count; i++)
		known[i] = (struct wlbd_known_node){.why = why_failed(&nodes[i]), .weight = nodes[i].weight};
	int rc = wlbd_avoidance_mark(known, candidates->count);
	for (int i = 0; i < candidates->count; i++)
		candidates->list[i].failed = known[i].why;
	free(known);
	return rc;
}

static int mark_failed(struct wlbd_candidate_nodes *candidates, const json_t *history, bool excludes_crashed)
{
	struct wlbd_crash crashes[WLBD_CRASHES_MAX];
	const json_t *losses = json_object_get(history, "node_losses");
	int count = read_crashes(history, crashes);
	struct wlbd_suspect *nodes = calloc((size_t)candidates->count + 1, sizeof(*nodes));
	if (nodes == NULL)
		return -1;
	for (int i = 0; i < candidates->count; i++) {
		nodes[i].node = candidates->list[i].name;
		nodes[i].losses = (int)json_integer_value(json_object_get(losses, nodes[i].node));
	}
	int rc = wlbd_crashes_suspect(crashes, count, nodes, candidates->count);
	if (rc == 0 && excludes_crashed)
		rc = mark_heaviest(candidates, nodes);
	candidates->program_step = wlbd_crashes_program_step(crashes, count);
	free(nodes);
	return rc;
}

static int mark_evicted(struct wlbd_candidate_nodes *candidates, const json_t *history)
{
	struct wlbd_past_eviction evictions[WLBD_EVICTIONS_MAX];
	int count = wlbd_past_evictions_read(json_object_get(history, "evictions"), evictions);
	const char **names = calloc((size_t)candidates->count + 1, sizeof(*names));
	bool *is_excluded = calloc((size_t)candidates->count + 1, sizeof(*is_excluded));
	bool *evicted = calloc((size_t)candidates->count + 1, sizeof(*evicted));
	int rc = names != NULL && is_excluded != NULL && evicted != NULL ? 0 : -1;
	for (int i = 0; rc == 0 && i < candidates->count; i++) {
		names[i] = candidates->list[i].name;
		is_excluded[i] = candidates->list[i].failed != NULL;
	}
	if (rc == 0)
		rc = wlbd_evictions_mark(evictions, count, names, candidates->count, is_excluded, evicted);
	for (int i = 0; rc == 0 && i < candidates->count; i++)
		candidates->list[i].evicted = evicted[i];
	free(evicted);
	free(is_excluded);
	free(names);
	return rc;
}

static int mark_avoided(struct wlbd_candidate_nodes *candidates, const json_t *history)
{
	const json_t *avoided = json_object_get(history, "avoided");
	struct wlbd_known_node *known = calloc((size_t)candidates->count + 1, sizeof(*known));
	if (known == NULL)
		return -1;
	for (int i = 0; i < candidates->count; i++) {
		const struct wlbd_candidate_node *node = &candidates->list[i];
		const json_t *entry = json_object_get(avoided, node->name);
		known[i] = (struct wlbd_known_node){.why = json_string_value(json_object_get(entry, "why")),
		                                    .weight = json_number_value(json_object_get(entry, "weight")),
		                                    .is_excluded = node->failed != NULL || node->evicted};
	}
	int rc = wlbd_avoidance_mark(known, candidates->count);
	for (int i = 0; i < candidates->count; i++)
		candidates->list[i].avoided = known[i].why;
	free(known);
	return rc;
}

int wlbd_candidate_nodes_make(const json_t *names, const json_t *history, struct wlbd_nodes_rules rules,
                              struct wlbd_candidate_nodes *candidates)
{
	candidates->count = (int)json_array_size(names);
	candidates->list = calloc((size_t)candidates->count + 1, sizeof(*candidates->list));
	if (candidates->list == NULL)
		return -1;
	for (int i = 0; i < candidates->count; i++)
		candidates->list[i].name = json_string_value(json_array_get(names, (size_t)i));
	/* From the strongest reason to the weakest, since all of them together may exclude so many nodes. */
	if (mark_failed(candidates, history, rules.excludes_crashed) == 0 && mark_evicted(candidates, history) == 0 &&
	    (!rules.avoids_nodes || mark_avoided(candidates, history) == 0))
		return 0;
	wlbd_candidate_nodes_free(candidates);
	return -1;
}

/* Returns the nodes of `order` with copies of their switches' names; NULL if out of memory. */
static struct wlbd_candidate_node *reordered(const struct wlbd_candidate_nodes *candidates, const int *order,
                                             const char *const *leaf)
{
	struct wlbd_candidate_node *list = calloc((size_t)candidates->count + 1, sizeof(*list));
	for (int i = 0; list != NULL && i < candidates->count; i++) {
		list[i] = candidates->list[order[i]];
		list[i].leaf = leaf[i] != NULL ? strdup(leaf[i]) : NULL;
	}
	return list;
}

int wlbd_candidate_nodes_order(struct wlbd_candidate_nodes *candidates, const struct wlb_topology_file *topology,
                               struct wlb_error *error)
{
	size_t count = (size_t)candidates->count;
	const char **names = calloc(count + 1, sizeof(*names)), **leaf = calloc(count + 1, sizeof(*leaf));
	int *order = calloc(count + 1, sizeof(*order));
	struct wlbd_candidate_node *list = NULL;
	int rc =
		names != NULL && order != NULL ? 0 : wlb_fail(error, "out of memory for the order of %zu nodes", count);
	for (size_t i = 0; rc == 0 && i < count; i++)
		names[i] = candidates->list[i].name;
	if (rc == 0)
		rc = wlb_topology_order_names(topology, names, candidates->count, order, leaf, error);
	if (rc == 0 && (list = reordered(candidates, order, leaf)) == NULL)
		rc = wlb_fail(error, "out of memory for the order of %zu nodes", count);
	if (rc == 0) {
		wlbd_candidate_nodes_free(&(struct wlbd_candidate_nodes){candidates->list, candidates->count, 0});
		candidates->list = list;
	}
	free(order);
	free(leaf);
	free(names);
	return rc;
}

int wlbd_candidate_nodes_held(const struct wlbd_candidate_nodes *candidates)
{
	int count = 0;
	for (int i = 0; i < candidates->count; i++)
		count += !candidates->list[i].down && !candidates->list[i].silent;
	return count;
}

void wlbd_candidate_nodes_free(struct wlbd_candidate_nodes *candidates)
{
	for (int i = 0; i < candidates->count; i++)
		free(candidates->list[i].leaf);
	free(candidates->list);
	*candidates = (struct wlbd_candidate_nodes){0};
}

/* ---- what the reply says of them -------------------------------------------------------------------- */

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
	for (int i = 0; i < decision->use_count && json_array_size(list) < TYPES_MAX; i++) {
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
