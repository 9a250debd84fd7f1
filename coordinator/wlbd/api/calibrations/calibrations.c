/* POST /v1/calibrations, which stores what `wlb calibrate` measured, and GET, the machine of a type of node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/api/calibrations/calibration_read.h"
#include "coordinator/wlbd/api/handlers.h"
#include "coordinator/wlbd/database/db_pool.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/http/long_reply.h"
#include "coordinator/wlbd/http/question_share.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/slurm/slurm_requests.h"
#include "coordinator/wlbd/wlbd.h"

/* ---- the type of the GPUs that it was made of ------------------------------------------------------- */

static const char gpu_prefix[] = "gpu";

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

/* Sets a node_type of "gpu" to "gpu:h100", the type that the nodes have in Slurm's GRES. Returns -1 with the node and
 * the rule where one has no type, they have several, or another than node_type names. */
static int set_type(struct wlbd_calibration *c, const struct wlbd_nodes *nodes, struct wlb_error *error)
{
	const char *after = c->node_type + strlen(gpu_prefix);
	if (strncmp(c->node_type, gpu_prefix, strlen(gpu_prefix)) != 0 || (*after != '\0' && *after != ':'))
		return 0;
	const struct wlbd_node *typed = find_typed(c, nodes, error);
	if (typed == NULL)
		return -1;
	if (*after == ':' && strcmp(after + 1, typed->gpu_type) != 0)
		return wlb_fail(error, "field 'node_type': '%s', and node %.200s has GPUs of type %s in Slurm's GRES",
		                c->node_type, typed->name, typed->gpu_type);
	snprintf(c->gpu_type, sizeof(c->gpu_type), "%s:%s", gpu_prefix, typed->gpu_type);
	c->node_type = c->gpu_type;
	return 0;
}

/* ---- storing ---------------------------------------------------------------------------------------- */

/* A calibration that the others of its type contradict is not stored, and the reason is the database's. */
static void on_stored(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_request *request = context;
	json_t *reply = result->status == WLBD_DB_OK ? json_loads(result->value, 0, NULL) : NULL;
	const char *refused = json_string_value(json_object_get(reply, "refused"));
	if (refused != NULL)
		wlbd_request_fail(request, 400, "field 'machine': %s", refused);
	else
		wlbd_request_reply_db(request, result);
	json_decref(reply);
}

static void store(struct wlbd_request *request)
{
	const struct wlbd_calibration *c = request->parsed;
	struct wlbd_params params = {0};
	char *nodes = json_dumps(c->nodes, JSON_COMPACT), *machine = json_dumps(c->machine, JSON_COMPACT);
	if (nodes == NULL || machine == NULL) {
		wlbd_request_fail_memory(request);
	} else {
		wlbd_params_add_integer(&params, request->uid);
		wlbd_params_add_boolean(&params, wlbd_request_privileged(request));
		wlbd_params_add_integer_if(&params, c->job_id > 0, c->job_id);
		wlbd_params_add_text(&params, c->node_type);
		wlbd_params_add_integer(&params, c->ranks_per_node);
		wlbd_params_add_text(&params, nodes);
		wlbd_params_add_text(&params, machine);
		wlbd_db_pool_execute(request->wlbd->questions, request->uid, 0,
		                     "select wlb_calibration_put($1, $2::boolean, $3, $4, $5::integer, $6, $7)",
		                     &params, on_stored, request);
	}
	free(nodes);
	free(machine);
}

/* Only the owner of a job can have measured in it, and only on its nodes. */
static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct wlbd_request *request = context;
	const struct wlbd_calibration *c = request->parsed;
	struct wlb_error error;
	if (request->wlbd->stopping)
		wlbd_request_fail_stopping(request);
	else if (wlbd_request_privileged(request))
		store(request);
	else if (facts->found != 1)
		wlbd_request_fail(request, 409,
		                  "job %lld: Slurm does not confirm that it is yours; measure again later",
		                  (long long)c->job_id);
	else if (facts->uid != request->uid)
		wlbd_request_fail(request, 403, "job %lld belongs to %s", (long long)c->job_id, facts->user);
	else if (wlbd_calibration_check_job(c, &facts->job, &error) != 0)
		wlbd_request_fail(request, 403, "%s", error.message);
	else
		store(request);
}

void wlbd_post_calibration(struct wlbd_request *request)
{
	struct wlb_error error = {0};
	struct wlbd_calibration *c = request->parsed = malloc(sizeof(*c));
	if (c == NULL) {
		wlbd_request_fail_memory(request);
		return;
	}
	if (wlbd_nodes_count(request->wlbd->nodes) == 0) /* with their types */
		wlbd_request_fail(request, 503, "Slurm has not listed its nodes yet; store it again later");
	else if (wlbd_calibration_read(request->body, c, &error) != 0 || set_type(c, request->wlbd->nodes, &error) != 0)
		wlbd_request_fail(request, 400, "%s", error.message);
	else if (c->job_id == 0 && !wlbd_request_privileged(request))
		wlbd_request_fail(
			request, 403,
			"field 'job_id' is missing: only root and SlurmUser store a calibration made outside a "
			"job of Slurm");
	else if (c->job_id == 0)
		store(request);
	else if (wlbd_question_share_take(request) == 0)
		wlbd_slurm_job(request->wlbd, (uint32_t)c->job_id, request->uid, on_job, request);
}

/* Answers with the types of the nodes of an attempt, which its user may ask for. */
static void get_node_types(struct wlbd_request *request, const char *attempt_id)
{
	struct wlbd_params params = {0};
	struct wlb_error error;
	const char *uuid;
	json_t *object = json_pack("{s:s}", "attempt_id", attempt_id);
	if (wlbd_field_uuid(object, "attempt_id", &uuid, &error) != 0) {
		wlbd_request_fail(request, 400, "%s", error.message);
	} else {
		wlbd_params_add_text(&params, uuid);
		wlbd_params_add_integer_if(&params, !wlbd_request_privileged(request), request->uid);
		wlbd_db_pool_execute(request->wlbd->reads, request->uid, 0,
		                     "select wlb_attempt_node_types($1::uuid, $2)", &params, wlbd_request_reply_db,
		                     request);
	}
	json_decref(object);
}

void wlbd_get_calibration(struct wlbd_request *request)
{
	struct wlbd_params params = {0};
	const char *attempt_id = wlbd_request_parameter(request, "attempt_id");
	if (attempt_id != NULL) {
		get_node_types(request, attempt_id);
		return;
	}
	const char *type = wlbd_request_parameter(request, "node_type"),
		   *ranks = wlbd_request_parameter(request, "ranks_per_node");
	char *end = NULL;
	long count = ranks != NULL ? strtol(ranks, &end, 10) : 1;
	if (type == NULL || strlen(type) > WLBD_NODE_TYPE_MAX) {
		wlbd_request_fail(request, 400, "parameter 'node_type' must be the type of a node, of at most %d bytes",
		                  WLBD_NODE_TYPE_MAX);
		return;
	}
	if ((end != NULL && *end != '\0') || count < 1 || count > WLBD_NODE_RANKS_MAX) {
		wlbd_request_fail(request, 400,
		                  "parameter 'ranks_per_node': '%.60s' must be a whole number from 1 to %d", ranks,
		                  WLBD_NODE_RANKS_MAX);
		return;
	}
	wlbd_params_add_text(&params, type);
	wlbd_params_add_integer_if(&params, ranks != NULL, count);
	wlbd_params_add_integer(&params, request->uid);
	wlbd_db_pool_execute(request->wlbd->reads, request->uid, 0, "select wlb_calibration_json($1, $2::integer, $3)",
	                     &params, wlbd_request_reply_db, request);
}
