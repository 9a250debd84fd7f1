#include "coordinator/wlb/run/state/record.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/json_text.h"
#include "coordinator/wlb/run/state/print.h"
#include "libwlb/wlb.h"

void wlb_run_record(struct wlb_reporter *reporter, const char *type, json_t *data)
{
	wlb_run_record_of(reporter, type, data, wlb_clock_unix_s());
}

void wlb_run_record_of(struct wlb_reporter *reporter, const char *type, json_t *data, double time_s)
{
	struct wlb_error error;
	char *text = data != NULL ? json_dumps(data, JSON_COMPACT) : NULL;
	json_decref(data);
	int rc = 0;
	if (text == NULL)
		rc = wlb_fail(&error, "out of memory");
	else if (reporter != NULL)
		rc = wlb_reporter_record_of(reporter, type, text, time_s, &error);
	if (rc != 0)
		wlb_run_print("a record of type %s is missing: %s", type, error.message);
	free(text);
}

void wlb_run_record_event(struct wlb_reporter *reporter, const char *kind, const char *detail)
{
	wlb_run_record(reporter, "event", json_pack("{s:s, s:o}", "kind", kind, "detail", wlb_json_text(detail)));
}

/* Ranks fill one node after the other. */
static json_t *rank_map(const struct wlb_attempt *attempt)
{
	json_t *map = json_array();
	for (int node = 0, rank = 0; node < attempt->node_count; node++)
		for (int i = 0; i < wlb_attempt_tasks_on(attempt, node); i++, rank++)
			json_array_append_new(map, json_pack("{s:i, s:o, s:i}", "rank", rank, "node",
			                                     wlb_json_text(attempt->nodes[node]), "local_rank", i));
	return map;
}

void wlb_run_record_attempt(const struct wlb_run *run, struct wlb_reporter *reporter, const struct wlb_attempt *attempt)
{
	const struct wlb_layout *l = &attempt->layout;
	bool goes_on = run->options.on_rank_exit == WLB_ON_RANK_EXIT_CONTINUE;
	json_t *data = json_pack("{s:{s:i, s:i, s:i, s:i}, s:i, s:o, s:I, s:s*}", "layout", "tp", l->tp, "cp", l->cp,
	                         "pp", l->pp, "dp", l->dp, "world_size", wlb_attempt_tasks(attempt), "rank_map",
	                         rank_map(attempt), "restart_count", (json_int_t)run->job.restart_count, "on_rank_exit",
	                         goes_on ? "continue" : NULL);
	wlb_run_record(reporter, "attempt", data);
}
