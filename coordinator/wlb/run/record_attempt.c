#include "coordinator/wlb/run/record_attempt.h"

#include <stdlib.h>

#include <jansson.h>

#include "coordinator/wlb/run/print.h"

/* Ranks fill one node after the other. */
static json_t *rank_map(const struct wlb_attempt *attempt)
{
	json_t *map = json_array();
	for (int node = 0, rank = 0; node < attempt->node_count; node++)
		for (int i = 0; i < wlb_attempt_tasks_on(attempt, node); i++, rank++)
			json_array_append_new(map, json_pack("{s:i, s:s, s:i}", "rank", rank, "node",
			                                     attempt->nodes[node], "local_rank", i));
	return map;
}

void wlb_run_record_attempt(struct wlb_reporter *reporter, const struct wlb_attempt *attempt, uint32_t restart_count)
{
	const struct wlb_layout *l = &attempt->layout;
	struct wlb_error error;
	json_t *data = json_pack("{s:{s:i, s:i, s:i, s:i}, s:i, s:o, s:I}", "layout", "tp", l->tp, "cp", l->cp, "pp",
	                         l->pp, "dp", l->dp, "world_size", wlb_attempt_tasks(attempt), "rank_map",
	                         rank_map(attempt), "restart_count", (json_int_t)restart_count);
	char *text = data != NULL ? json_dumps(data, JSON_COMPACT) : NULL;
	if (text != NULL && reporter != NULL && wlb_reporter_record(reporter, "attempt", text, &error) != 0)
		wlb_run_print("the nodes of attempt %d are not recorded: %s", attempt->number, error.message);
	free(text);
	json_decref(data);
}
