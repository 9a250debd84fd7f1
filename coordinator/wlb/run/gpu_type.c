#include "coordinator/wlb/run/gpu_type.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/slurm_api.h"

const char *wlb_run_gpu_type(const struct wlb_attempt *attempt, char *type, size_t size)
{
	struct wlb_slurm_node *nodes;
	int count;
	type[0] = '\0';
	if (wlb_slurm_nodes(&nodes, &count, NULL) != 0)
		return NULL;
	for (int i = 0; i < count && type[0] == '\0'; i++)
		for (int k = 0; k < attempt->node_count; k++)
			if (strcmp(nodes[i].name, attempt->nodes[k]) == 0 && nodes[i].gpu_type[0] != '\0') {
				snprintf(type, size, "%s", nodes[i].gpu_type);
				break;
			}
	free(nodes);
	return type[0] != '\0' ? type : NULL;
}
