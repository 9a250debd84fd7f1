#include "worker/calibrate/send.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/json_text.h"
#include "common/number.h"
#include "coordinator/client/request_once.h"
#include "planner/node_type.h"
#include "worker/launch/options.h"

enum { SEND_MS = 10000 };

static json_t *names_of(const struct wlb_launch *launch)
{
	json_t *names = json_array();
	for (int node = 0; names != NULL && node < launch->node_count; node++)
		json_array_append_new(names, wlb_json_text(launch->nodes[node]));
	return names;
}

/* The body of the request; the caller frees it. NULL if out of memory. */
static char *body_of(const char *text, const struct wlb_launch *launch, const struct wlb_calibrate_options *options)
{
	char type[128];
	int64_t job_id = 0;
	const char *job = getenv("SLURM_JOB_ID");
	wlb_node_type(options->device == WLB_DEVICE_CUDA, type, sizeof(type));
	json_t *body = json_pack("{s:o, s:i, s:o, s:o}", "node_type", wlb_json_text(type), "ranks_per_node",
	                         launch->local_size, "nodes", names_of(launch), "machine", json_loads(text, 0, NULL));
	if (job != NULL && wlb_number_parse("SLURM_JOB_ID", job, 1, UINT32_MAX, &job_id, NULL) == 0)
		json_object_set_new(body, "job_id", json_integer(job_id));
	char *made = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	return made;
}

/* Prints the type of node that the coordinator has stored it for: it knows the types of GPUs from Slurm. */
static void print_stored(const char *text)
{
	json_t *reply = json_loads(text, 0, NULL);
	const char *type = json_string_value(json_object_get(reply, "node_type"));
	printf("stored by the coordinator for nodes of type '%s'\n", type != NULL ? type : "?");
	json_decref(reply);
}

static int send(const struct wlb_client_config *config, const char *body, struct wlb_error *error)
{
	if (body == NULL)
		return wlb_fail(error, "out of memory for the request");
	char *reply = wlb_client_request_once(config, "POST", "/v1/calibrations", body, SEND_MS, error);
	if (reply == NULL)
		return -1;
	print_stored(reply);
	free(reply);
	return 0;
}

void wlb_calibration_send(const char *text, const struct wlb_launch *launch,
                          const struct wlb_calibrate_options *options)
{
	struct wlb_client_config config;
	struct wlb_error error;
	if (options->local || wlb_client_config_load(&config, &error) < 0)
		return;
	char *body = body_of(text, launch, options);
	if (send(&config, body, &error) != 0)
		fprintf(stderr, "wlb calibrate: the coordinator has not stored it, only %s has it: %s\n",
		        options->output, error.message);
	free(body);
}
