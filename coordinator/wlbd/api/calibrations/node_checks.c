/* POST /v1/node_checks, which stores what `wlb check-node --report` found; POST /v1/runs/RUN/node_checks, the same of a
 * node that an attempt excludes, for its run alone; and GET /v1/nodes, what is known of nodes. */
#include <stdlib.h>

#include "coordinator/wlbd/api/calibrations/node_check_read.h"
#include "coordinator/wlbd/api/find_attempt.h"
#include "coordinator/wlbd/api/handlers.h"
#include "coordinator/wlbd/api/parameters.h"
#include "coordinator/wlbd/database/db_pool.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/http/long_reply.h"
#include "coordinator/wlbd/http/question_share.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/wlbd.h"

enum { NODES_LIMIT = 100, NODES_MAX = 4096 };

static void store(struct wlbd_request *request, const struct wlbd_node_check *check)
{
	struct wlbd_params params = {0};
	char *checks = check->checks != NULL ? json_dumps(check->checks, JSON_COMPACT) : NULL;
	wlbd_log_limited(check->healthy ? WLBD_LOG_INFO : WLBD_LOG_WARNING, WLBD_LIMIT_NODE_CHECK,
	                 "node %s was %s by uid %u: %s", check->node, check->clears ? "cleared" : "checked",
	                 (unsigned)request->uid, check->healthy ? "healthy" : check->reason);
	wlbd_params_add_text(&params, check->node);
	wlbd_params_add_boolean(&params, check->healthy);
	wlbd_params_add_text(&params, check->reason);
	wlbd_params_add_text(&params, checks != NULL ? checks : "[]");
	wlbd_params_add_boolean(&params, check->clears);
	wlbd_params_add_integer(&params, request->uid);
	wlbd_db_execute(request->wlbd->writes,
	                "select wlb_node_check_put($1, $2::boolean, $3, $4::json, $5::boolean, $6)", &params,
	                wlbd_request_reply_db, request);
	free(checks);
}

static bool is_of_slurm(const struct wlbd_request *request, const struct wlbd_node_check *check)
{
	return wlbd_nodes_find(request->wlbd->nodes, check->node) != NULL;
}

/* A node may have been added to Slurm since its nodes were listed. */
static void on_nodes(void *context, const struct wlb_error *unlisted)
{
	struct wlbd_request *request = context;
	const struct wlbd_node_check *check = request->parsed;
	if (request->wlbd->stopping)
		wlbd_request_fail_stopping(request);
	else if (is_of_slurm(request, check))
		store(request, check);
	else if (unlisted != NULL)
		wlbd_request_fail(request, 503, "the nodes of Slurm are not known: %s; report again later",
		                  unlisted->message);
	else
		wlbd_request_fail(request, 400, "field 'node': '%.60s' is no node of Slurm; its nodes are in sinfo -N",
		                  check->node);
}

/* A check is evidence against a node for all users, so it must not be a user's. */
void wlbd_post_node_check(struct wlbd_request *request)
{
	struct wlb_error error;
	struct wlbd_node_check *check = request->parsed = malloc(sizeof(*check));
	if (check == NULL)
		wlbd_request_fail_memory(request);
	else if (!wlbd_request_privileged(request))
		wlbd_request_fail(request, 403, "only root and SlurmUser report checks of nodes");
	else if (wlbd_node_check_read(request->body, check, &error) != 0)
		wlbd_request_fail(request, 400, "%s", error.message);
	else if (is_of_slurm(request, check))
		store(request, check);
	else
		wlbd_nodes_refresh(request->wlbd, request->uid, on_nodes, request);
}

/* ---- of a run -----------------------------------------------------------------------------------------------------
 */

static void store_of_run(struct wlbd_request *request, struct wlbd_attempt *attempt)
{
	const struct wlbd_node_check *check = request->parsed;
	struct wlbd_params params = {0};
	if (wlbd_question_share_take(request) != 0)
		return;
	char *checks = check->checks != NULL ? json_dumps(check->checks, JSON_COMPACT) : NULL;
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_text(&params, check->node);
	wlbd_params_add_boolean(&params, check->healthy);
	wlbd_params_add_text(&params, check->reason);
	wlbd_params_add_text(&params, checks != NULL ? checks : "[]");
	wlbd_db_pool_execute(request->wlbd->questions, request->uid, 0,
	                     "select wlb_run_node_check_put($1, $2, $3::boolean, $4, $5::json)", &params,
	                     wlbd_request_reply_db, request);
	free(checks);
}

void wlbd_post_run_node_check(struct wlbd_request *request)
{
	struct wlb_error error;
	const char *attempt_id;
	struct wlbd_node_check *check = request->parsed = malloc(sizeof(*check));
	if (check == NULL)
		wlbd_request_fail_memory(request);
	else if (wlbd_field_uuid(request->body, "attempt_id", &attempt_id, &error) != 0 ||
	         wlbd_node_check_read(request->body, check, &error) != 0)
		wlbd_request_fail(request, 400, "%s", error.message);
	else
		wlbd_find_attempt(request, attempt_id, store_of_run);
}

/* ---- of all users --------------------------------------------------------------------------------------------------
 */

void wlbd_get_nodes(struct wlbd_request *request)
{
	struct wlbd_params params = {0};
	int64_t limit = NODES_LIMIT;
	if (wlbd_parameter_number(request, "limit", 1, NODES_MAX, &limit) != 0)
		return;
	wlbd_parameter_add_reader(&params, request);
	wlbd_params_add_text(&params, wlbd_request_parameter(request, "node"));
	wlbd_params_add_integer(&params, limit);
	wlbd_params_add_boolean(&params, request->wlbd->config.avoid_nodes);
	wlbd_db_pool_execute(request->wlbd->reads, request->uid, 0, "select wlb_nodes_list($1, $2, $3, $4::boolean)",
	                     &params, wlbd_request_reply_db, request);
}
