#include "coordinator/wlbd/api/calibrations/calibration_type.h"

#include <stdio.h>
#include <string.h>

static const char prefix[] = "gpu";

static bool has_type(const struct wlbd_node *node)
{
	return node != NULL && node->gpu_type[0] != '\0';
}

/* Returns the first node, if all have a type, and the same. */
static const struct wlbd_node *find_typed(const struct wlbd_calibration *c, const struct wlbd_nodes *nodes,
                                          struct wlb_error *error)
{
	const struct wlbd_node *first = NULL;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < json_array_size(c->nodes); i++) {
		const char *name = json_string_value(json_array_get(c->nodes, i));
		const struct wlbd_node *node = wlbd_nodes_find(nodes, name);
		first = first != NULL ? first : node;
		if (!has_type(node))
			rc = wlb_fail(
				error,
				"field 'nodes': %.200s has no type of GPU in Slurm's GRES, so that its calibration "
				"could serve nodes with other GPUs: name the type in gres.conf and slurm.conf "
				"(gpu:h100:8), or name the file with WLB_MACHINE",
				name);
		else if (strcmp(first->gpu_type, node->gpu_type) != 0)
			rc = wlb_fail(
				error,
				"field 'nodes': %.200s has GPUs of type %s and %.200s of type %s: measure nodes of "
				"one type",
				first->name, first->gpu_type, node->name, node->gpu_type);
	}
	return rc == 0 ? first : NULL;
}

int wlbd_calibration_set_type(struct wlbd_calibration *c, const struct wlbd_nodes *nodes, struct wlb_error *error)
{
	const char *after = c->node_type + strlen(prefix);
	if (strncmp(c->node_type, prefix, strlen(prefix)) != 0 || (*after != '\0' && *after != ':'))
		return 0;
	const struct wlbd_node *typed = find_typed(c, nodes, error);
	if (typed == NULL)
		return -1;
	if (*after == ':' && strcmp(after + 1, typed->gpu_type) != 0)
		return wlb_fail(error, "field 'node_type': '%s', and node %.200s has GPUs of type %s in Slurm's GRES",
		                c->node_type, typed->name, typed->gpu_type);
	snprintf(c->gpu_type, sizeof(c->gpu_type), "%s:%s", prefix, typed->gpu_type);
	c->node_type = c->gpu_type;
	return 0;
}
