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

static void store(struct wlbd_call *call, const struct wlbd_node_check *check)
{
	struct wlbd_params params = {0};
	char *checks = check->checks != NULL ? json_dumps(check->checks, JSON_COMPACT) : NULL;
	wlbd_log_limited(check->healthy ? WLBD_LOG_INFO : WLBD_LOG_WARNING, WLBD_LIMIT_NODE_CHECK,
	                 "node %s was %s by uid %u: %s", check->node, check->clears ? "cleared" : "checked",
	                 (unsigned)call->uid, check->healthy ? "healthy" : check->reason);
	wlbd_params_add_text(&params, check->node);
	wlbd_params_add_boolean(&params, check->healthy);
	wlbd_params_add_text(&params, check->reason);
	wlbd_params_add_text(&params, checks != NULL ? checks : "[]");
	wlbd_params_add_boolean(&params, check->clears);
	wlbd_params_add_integer(&params, call->uid);
	wlbd_db_call(call->wlbd->writes, "select wlb_node_check_put($1, $2::boolean, $3, $4::json, $5::boolean, $6)",
	             &params, wlbd_call_reply_db, call);
	free(checks);
}

static bool is_of_slurm(const struct wlbd_call *call, const struct wlbd_node_check *check)
{
	return wlbd_nodes_find(call->wlbd->nodes, check->node) != NULL;
}

/* A node may have been added to Slurm since its nodes were listed. */
static void on_nodes(void *context, const struct wlb_error *unlisted)
{
	struct wlbd_call *call = context;
	const struct wlbd_node_check *check = call->parsed;
	if (call->wlbd->stopping)
		wlbd_call_fail_stopping(call);
	else if (is_of_slurm(call, check))
		store(call, check);
	else if (unlisted != NULL)
		wlbd_call_fail(call, 503, "the nodes of Slurm are not known: %s; report again later",
		               unlisted->message);
	else
		wlbd_call_fail(call, 400, "field 'node': '%.60s' is no node of Slurm; its nodes are in sinfo -N",
		               check->node);
}

/* A check is evidence against a node for all users, so it must not be a user's. */
void wlbd_post_node_check(struct wlbd_call *call)
{
	struct wlb_error error;
	struct wlbd_node_check *check = call->parsed = malloc(sizeof(*check));
	if (check == NULL)
		wlbd_call_fail_memory(call);
	else if (!wlbd_call_privileged(call))
		wlbd_call_fail(call, 403, "only root and SlurmUser report checks of nodes");
	else if (wlbd_node_check_read(call->body, check, &error) != 0)
		wlbd_call_fail(call, 400, "%s", error.message);
	else if (is_of_slurm(call, check))
		store(call, check);
	else
		wlbd_nodes_refresh(call->wlbd, call->uid, on_nodes, call);
}

/* ---- of a run -----------------------------------------------------------------------------------------------------
 */

static void store_of_run(struct wlbd_call *call, struct wlbd_attempt *attempt)
{
	const struct wlbd_node_check *check = call->parsed;
	struct wlbd_params params = {0};
	if (wlbd_question_share_take(call) != 0)
		return;
	char *checks = check->checks != NULL ? json_dumps(check->checks, JSON_COMPACT) : NULL;
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_text(&params, check->node);
	wlbd_params_add_boolean(&params, check->healthy);
	wlbd_params_add_text(&params, check->reason);
	wlbd_params_add_text(&params, checks != NULL ? checks : "[]");
	wlbd_db_pool_call(call->wlbd->questions, call->uid, 0,
	                  "select wlb_run_node_check_put($1, $2, $3::boolean, $4, $5::json)", &params,
	                  wlbd_call_reply_db, call);
	free(checks);
}

void wlbd_post_run_node_check(struct wlbd_call *call)
{
	struct wlb_error error;
	const char *attempt_id;
	struct wlbd_node_check *check = call->parsed = malloc(sizeof(*check));
	if (check == NULL)
		wlbd_call_fail_memory(call);
	else if (wlbd_field_uuid(call->body, "attempt_id", &attempt_id, &error) != 0 ||
	         wlbd_node_check_read(call->body, check, &error) != 0)
		wlbd_call_fail(call, 400, "%s", error.message);
	else
		wlbd_find_attempt(call, attempt_id, store_of_run);
}

/* ---- of all users --------------------------------------------------------------------------------------------------
 */

void wlbd_get_nodes(struct wlbd_call *call)
{
	struct wlbd_params params = {0};
	int64_t limit = NODES_LIMIT;
	if (wlbd_parameter_number(call, "limit", 1, NODES_MAX, &limit) != 0)
		return;
	wlbd_parameter_add_reader(&params, call);
	wlbd_params_add_text(&params, wlbd_call_parameter(call, "node"));
	wlbd_params_add_integer(&params, limit);
	wlbd_params_add_boolean(&params, call->wlbd->config.avoid_nodes);
	wlbd_db_pool_call(call->wlbd->reads, call->uid, 0, "select wlb_nodes_list($1, $2, $3, $4::boolean)", &params,
	                  wlbd_call_reply_db, call);
}
