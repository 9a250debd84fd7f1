#include "coordinator/wlbd/requests/calibration_type.h"

#include <stdio.h>
#include <string.h>

static const char prefix[] = "gpu";

/* Finds the first node with a type, and fails at one that has another. */
static int find_typed(const struct wlbd_calibration *c, const struct wlbd_nodes *nodes, const struct wlbd_node **typed,
                      struct wlb_error *error)
{
	*typed = NULL;
	for (size_t i = 0; i < json_array_size(c->nodes); i++) {
		const char *name = json_string_value(json_array_get(c->nodes, i));
		const struct wlbd_node *node = name != NULL ? wlbd_nodes_find(nodes, name) : NULL;
		if (node == NULL || node->gpu_type[0] == '\0')
			continue;
		if (*typed == NULL)
			*typed = node;
		else if (strcmp((*typed)->gpu_type, node->gpu_type) != 0)
			return wlb_fail(
				error,
				"field 'nodes': %.200s has GPUs of type %s and %.200s of type %s: measure nodes "
				"of one type",
				(*typed)->name, (*typed)->gpu_type, node->name, node->gpu_type);
	}
	return 0;
}

int wlbd_calibration_set_type(struct wlbd_calibration *c, const struct wlbd_nodes *nodes, struct wlb_error *error)
{
	const struct wlbd_node *typed;
	const char *after = c->node_type + strlen(prefix);
	if (strncmp(c->node_type, prefix, strlen(prefix)) != 0 || (*after != '\0' && *after != ':'))
		return 0;
	if (find_typed(c, nodes, &typed, error) < 0)
		return -1;
	if (typed == NULL)
		return 0;
	if (*after == ':' && strcmp(after + 1, typed->gpu_type) != 0)
		return wlb_fail(error, "field 'node_type': '%s', and node %.200s has GPUs of type %s in Slurm's GRES",
		                c->node_type, typed->name, typed->gpu_type);
	snprintf(c->gpu_type, sizeof(c->gpu_type), "%s:%s", prefix, typed->gpu_type);
	c->node_type = c->gpu_type;
	return 0;
}
