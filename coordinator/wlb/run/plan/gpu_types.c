#include "coordinator/wlb/run/plan/gpu_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/slurm_api.h"

/* Whether the list "h100,a100" has the type. */
static bool has_type(const char *types, const char *type)
{
	size_t length = strlen(type);
	for (const char *at = types; *at != '\0'; at += strspn(at, ",")) {
		size_t word = strcspn(at, ",");
		if (word == length && strncmp(at, type, length) == 0)
			return true;
		at += word;
	}
	return false;
}

/* Adds a type that the list does not have yet, and that no comma makes two. */
static void add_type(const char *type, char types[WLB_RUN_GPU_TYPES_BYTES])
{
	size_t used = strlen(types), length = strlen(type);
	if (length == 0 || strchr(type, ',') != NULL || used + length + 2 > WLB_RUN_GPU_TYPES_BYTES ||
	    has_type(types, type))
		return;
	snprintf(types + used, WLB_RUN_GPU_TYPES_BYTES - used, "%s%s", used > 0 ? "," : "", type);
}

static bool has_node(const struct wlb_attempt *attempt, const char *name)
{
	for (int i = 0; i < attempt->node_count; i++)
		if (strcmp(attempt->nodes[i], name) == 0)
			return true;
	return false;
}

static void ask_slurm(const struct wlb_attempt *attempt, char types[WLB_RUN_GPU_TYPES_BYTES])
{
	struct wlb_slurm_node *nodes;
	int count;
	if (wlb_slurm_nodes(&nodes, &count, NULL) != 0)
		return;
	for (int i = 0; i < count; i++)
		if (nodes[i].gpu_type[0] != '\0' && has_node(attempt, nodes[i].name))
			add_type(nodes[i].gpu_type, types);
	free(nodes);
}

void wlb_run_gpu_types(const struct wlb_run *run, const struct wlb_attempt *attempt,
                       char types[WLB_RUN_GPU_TYPES_BYTES])
{
	types[0] = '\0';
	if (run->job.gpus_per_node == 0)
		return;
	for (size_t i = 0; i < json_array_size(attempt->gpu_types); i++) {
		const char *type = json_string_value(json_object_get(json_array_get(attempt->gpu_types, i), "type"));
		if (type != NULL)
			add_type(type, types);
	}
	if (attempt->gpu_types == NULL)
		ask_slurm(attempt, types);
}

bool wlb_run_has_other_gpus(const struct wlb_run *run, const struct wlb_attempt *attempt, const char *node)
{
	char types[WLB_RUN_GPU_TYPES_BYTES] = "";
	struct wlb_slurm_node *nodes;
	const char *own = "";
	int count;
	if (run->job.gpus_per_node == 0 || wlb_slurm_nodes(&nodes, &count, NULL) != 0)
		return false;
	for (int i = 0; i < count; i++) {
		if (strcmp(nodes[i].name, node) == 0)
			own = nodes[i].gpu_type;
		else if (has_node(attempt, nodes[i].name))
			add_type(nodes[i].gpu_type, types);
	}
	bool differs = own[0] != '\0' && types[0] != '\0' && strcmp(own, types) != 0;
	free(nodes);
	return differs;
}
