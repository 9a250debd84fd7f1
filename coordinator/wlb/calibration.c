#include "coordinator/wlb/calibration.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/wlb/api.h"
#include "planner/node_type.h"

json_t *wlb_calibration_ask(struct wlb_connection *connection, int gpus, const char *gpu_type, int ranks_per_node,
                            int timeout_ms, struct wlb_error *error)
{
	char type[128];
	if (gpus && gpu_type != NULL)
		snprintf(type, sizeof(type), "gpu:%s", gpu_type);
	else
		wlb_node_type(gpus, type, sizeof(type));
	return wlb_calibration_of_type(connection, type, ranks_per_node, timeout_ms, error);
}

json_t *wlb_calibration_of_type(struct wlb_connection *connection, const char *node_type, int ranks_per_node,
                                int timeout_ms, struct wlb_error *error)
{
	char ranks[16], path[512] = "/v1/calibrations";
	wlb_api_query(path, sizeof(path), "node_type", node_type);
	snprintf(ranks, sizeof(ranks), "%d", ranks_per_node);
	if (ranks_per_node > 0)
		wlb_api_query(path, sizeof(path), "ranks_per_node", ranks);
	return wlb_api_request(connection, "GET", path, NULL, timeout_ms, NULL, error);
}

json_t *wlb_calibration_node_types(struct wlb_connection *connection, const char *attempt_id, int timeout_ms)
{
	char path[128] = "/v1/calibrations";
	wlb_api_query(path, sizeof(path), "attempt_id", attempt_id);
	json_t *reply = wlb_api_request(connection, "GET", path, NULL, timeout_ms, NULL, NULL);
	json_t *types = reply != NULL ? json_array() : NULL;
	const json_t *list = json_object_get(reply, "node_types");
	for (size_t i = 0; i < json_array_size(list); i++)
		json_array_append(types, json_object_get(json_array_get(list, i), "node_type"));
	json_decref(reply);
	return types;
}

const char *wlb_calibration_source(const json_t *reply)
{
	const char *source = json_string_value(json_object_get(reply, "source"));
	if (source == NULL || !json_is_object(json_object_get(reply, "machine")))
		return NULL;
	if (strcmp(source, "administrator") == 0)
		return "an administrator's calibration";
	return strcmp(source, "own") == 0 ? "your own calibration"
	                                  : "the median of calibrations on which several users agree";
}

/* Appends the names of a list. Returns how many there are. */
static int append_names(const json_t *list, char *names, size_t size)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));
		size_t used = strlen(names);
		snprintf(names + used, size - used, "%s%s", used > 0 ? ", " : "", name != NULL ? name : "?");
	}
	return (int)json_array_size(list);
}

int wlb_calibration_outvoted(const json_t *calibration, char *names, size_t size)
{
	names[0] = '\0';
	int count = append_names(json_object_get(calibration, "outvoted_operations"), names, size);
	return count + append_names(json_object_get(calibration, "outvoted_parts"), names, size);
}
