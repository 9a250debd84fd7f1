#include "coordinator/wlbd/requests/outdated.h"

#include <stdio.h>

#include "common/clock.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/wlbd.h"

static bool is_noted(const struct wlbd_attempt *of)
{
	const struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &of->wlbd->attempts->list, link)
	if (attempt->run_pk == of->run_pk && attempt->is_outdated)
		return true;
	return false;
}

void wlbd_outdated_record(const struct wlbd_call *call, struct wlbd_attempt *attempt)
{
	struct wlbd_params params = {0};
	if (!call->is_outdated || is_noted(attempt))
		return;
	attempt->is_outdated = true;
	wlbd_log(
		WLBD_LOG_WARNING,
		"run %s: a program of it is older than this wlbd and takes replies without proof; upgrade WLB where it "
		"was started",
		attempt->run);
	wlbd_params_add_integer(&params, attempt->run_pk);
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_seconds(&params, wlb_clock_unix_s());
	wlbd_outbox_put(
		attempt->wlbd->outbox, attempt->uid, attempt->run_pk,
		"insert into events (run_id, attempt_id, kind, detail, recorded_at) select $1::bigint, $2::bigint, "
		"'client_outdated', 'a program of this run is older than the coordinator: upgrade it on the submit "
		"host and the nodes', to_timestamp($3::float8) "
		"where not exists (select from events where run_id = $1::bigint and kind = 'client_outdated')",
		&params);
}

void wlbd_outdated_add_to_reason(const struct wlbd_call *call, json_t *decision)
{
	const char *reason = json_string_value(json_object_get(decision, "reason"));
	if (call->is_outdated && reason != NULL)
		json_object_set_new(
			decision, "reason",
			json_sprintf("%s; this wlb is older than the coordinator: upgrade it on the submit host",
		                     reason));
}
