#include "checks/node/suspected.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "checks/node/report.h"
#include "coordinator/client/call_once.h"

enum { ASK_MS = 10000 };

static const char in_path[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

/* A node of which nothing is known is not listed. */
static int is_suspected(const char *reply, struct wlb_error *error)
{
	json_t *json = json_loads(reply, 0, NULL);
	const json_t *nodes = json_object_get(json, "nodes");
	int suspected = json_is_true(json_object_get(json_array_get(nodes, 0), "suspected"));
	if (!json_is_array(nodes))
		suspected = wlb_fail(error, "the coordinator's reply is no list of nodes");
	json_decref(json);
	return suspected;
}

int wlb_check_suspected(struct wlb_error *error)
{
	struct wlb_client_config config;
	char node[HOST_NAME_MAX + 1] = "", path[HOST_NAME_MAX + 32];
	wlb_report_node_name(node, sizeof(node));
	if (*node == '\0' || node[strspn(node, in_path)] != '\0')
		return wlb_fail(error, "SLURMD_NODENAME '%.60s': must be the name of a node", node);
	if (wlb_client_config_load(&config, error) < 0)
		return -1;
	snprintf(path, sizeof(path), "/v1/nodes?node=%s", node);
	char *reply = wlb_client_call_once(&config, "GET", path, NULL, ASK_MS, error);
	int suspected = reply != NULL ? is_suspected(reply, error) : -1;
	free(reply);
	return suspected;
}
