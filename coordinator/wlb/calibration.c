#include "coordinator/wlb/calibration.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/wlb/api.h"
#include "planner/node_type.h"

json_t *wlb_calibration_ask(struct wlb_connection *connection, int gpus, const char *gpu_type, int ranks_per_node,
                            int timeout_ms, struct wlb_error *error)
{
	char type[128], ranks[16], path[512] = "/v1/calibrations";
	if (gpus && gpu_type != NULL)
		snprintf(type, sizeof(type), "gpu:%s", gpu_type);
	else
		wlb_node_type(gpus, type, sizeof(type));
	wlb_api_query(path, sizeof(path), "node_type", type);
	snprintf(ranks, sizeof(ranks), "%d", ranks_per_node);
	if (ranks_per_node > 0)
		wlb_api_query(path, sizeof(path), "ranks_per_node", ranks);
	return wlb_api_call(connection, "GET", path, NULL, timeout_ms, NULL, error);
}

const char *wlb_calibration_source(const json_t *reply)
{
	const char *source = json_string_value(json_object_get(reply, "source"));
	if (source == NULL || !json_is_object(json_object_get(reply, "machine")))
		return NULL;
	if (strcmp(source, "administrator") == 0)
		return "an administrator's calibration";
	return strcmp(source, "own") == 0 ? "your own calibration" : "a calibration on which several users agree";
}
