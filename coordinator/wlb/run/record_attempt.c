#include "coordinator/wlb/run/record_attempt.h"

#include <jansson.h>

#include "common/json_text.h"
#include "coordinator/wlb/run/record_event.h"

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

void wlb_run_record_attempt(struct wlb_reporter *reporter, const struct wlb_attempt *attempt, uint32_t restart_count)
{
	const struct wlb_layout *l = &attempt->layout;
	json_t *data = json_pack("{s:{s:i, s:i, s:i, s:i}, s:i, s:o, s:I}", "layout", "tp", l->tp, "cp", l->cp, "pp",
	                         l->pp, "dp", l->dp, "world_size", wlb_attempt_tasks(attempt), "rank_map",
	                         rank_map(attempt), "restart_count", (json_int_t)restart_count);
	wlb_run_record(reporter, "attempt", data);
}
