/* POST /v1/runs/RUN/settings: its owner, or an administrator, changes a run while it goes on. */
#include <string.h>

#include "common/on_fault.h"
#include "coordinator/wlbd/api/handlers.h"
#include "coordinator/wlbd/api/run_change.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/wlbd.h"

/* A setting that wlbd does not know is refused: the user would believe that it is in force. */
static int check_names(json_t *body, struct wlb_error *error)
{
	const char *name;
	json_t *value;
	json_object_foreach(body, name, value)
	{
		if (strcmp(name, "on_fault") != 0)
			return wlb_fail(error, "field '%.60s': is no setting of a run; the settings are: on_fault",
			                name);
	}
	return 0;
}

static int read_settings(json_t *body, char items[WLB_ON_FAULT_SIZE], struct wlb_error *error)
{
	const char *on_fault = NULL;
	if (check_names(body, error) != 0 ||
	    wlbd_field_text(body, "on_fault", WLBD_REQUIRED, WLB_ON_FAULT_SIZE - 1, &on_fault, error) != 0)
		return -1;
	if (wlb_on_fault_items(on_fault, items, WLB_ON_FAULT_SIZE, error) != 0)
		return wlb_fail_in(error, "field 'on_fault'");
	return 0;
}

/* It is stored; the attempts in memory follow it. */
static void on_set(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_request *request = context;
	if (result->status != WLBD_DB_OK) {
		wlbd_request_fail_db(request, result);
		return;
	}
	json_t *stored = json_loads(result->value, 0, NULL);
	const char *on_fault = json_string_value(json_object_get(stored, "on_fault"));
	if (on_fault == NULL) {
		wlbd_request_fail_memory(request);
	} else {
		wlbd_attempts_set_on_fault(request->wlbd, json_integer_value(json_object_get(stored, "run_pk")),
		                           on_fault);
		wlbd_log_limited(WLBD_LOG_INFO, WLBD_LIMIT_SETTING, "run %s: on-fault is %s, by uid %u", request->run,
		                 on_fault, (unsigned)request->uid);
		json_object_del(stored, "run_pk");
		wlbd_request_reply(request, 200, json_incref(stored));
	}
	json_decref(stored);
}

void wlbd_post_settings(struct wlbd_request *request)
{
	struct wlb_error error = {0};
	struct wlbd_params params = {0};
	char items[WLB_ON_FAULT_SIZE], defaults[WLB_ON_FAULT_SIZE];
	if (read_settings(request->body, items, &error) != 0) {
		wlbd_request_fail(request, 400, "%s", error.message);
		return;
	}
	wlb_on_fault_text(&request->wlbd->config.on_fault, defaults, sizeof(defaults));
	wlbd_params_add_text(&params, request->run);
	wlbd_params_add_integer_if(&params, !wlbd_request_privileged(request), request->uid);
	wlbd_params_add_integer(&params, request->uid);
	wlbd_params_add_text(&params, items);
	wlbd_params_add_text(&params, defaults);
	wlbd_run_change(request->wlbd, request->uid, wlbd_run_job_id(request->run),
	                "select wlb_run_set($1, $2, $3, $4, $5)", &params, on_set, request);
}
