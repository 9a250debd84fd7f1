#include "coordinator/wlbd/verdicts/past_evictions.h"

#include <stdlib.h>
#include <string.h>

#include "common/fault_kinds.h"
#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/wlbd.h"

int wlbd_past_evictions_read(const json_t *list, struct wlbd_past_eviction evictions[WLBD_EVICTIONS_MAX])
{
	int count = 0;
	for (size_t i = 0; i < json_array_size(list) && count < WLBD_EVICTIONS_MAX; i++) {
		const json_t *entry = json_array_get(list, i);
		const char *kind = json_string_value(json_object_get(entry, "kind"));
		evictions[count++] = (struct wlbd_past_eviction){
			.node = json_string_value(json_object_get(entry, "node")),
			.stood_still = kind != NULL && strcmp(kind, wlb_faults[WLB_FAULT_HANG].name) == 0,
			.step = json_integer_value(json_object_get(entry, "step")),
			.age_s = json_number_value(json_object_get(entry, "age_s")),
		};
	}
	return count;
}

static const struct wlbd_names *job_nodes(const struct wlbd_attempt *attempt)
{
	return attempt->nodes.allocation_known ? &attempt->nodes.allocation : &attempt->nodes.started_on;
}

void wlbd_past_evictions_set(struct wlbd_attempt *attempt, const json_t *list)
{
	struct wlbd_past_eviction evictions[WLBD_EVICTIONS_MAX];
	const struct wlbd_names *nodes = job_nodes(attempt);
	int count = wlbd_past_evictions_read(list, evictions);
	bool *evicted = calloc((size_t)nodes->count + 1, sizeof(*evicted));
	if (evicted == NULL)
		return;
	attempt->excluded =
		(struct wlbd_excluded){.is_asked = true, .is_known = true, .max = wlbd_excluded_max(nodes->count)};
	wlbd_evictions_mark(evictions, count, (const char *const *)nodes->list, nodes->count, NULL, evicted);
	for (int i = 0; i < nodes->count; i++) {
		bool is_used = wlbd_names_find(&attempt->nodes.started_on, nodes->list[i]) >= 0;
		attempt->excluded.count += evicted[i] && !is_used;
		attempt->excluded.used += evicted[i] && is_used;
	}
	free(evicted);
}

static void on_answer(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_attempt *attempt = wlbd_attempt_ref_find(context);
	json_t *list =
		result->status == WLBD_DB_OK && result->value != NULL ? json_loads(result->value, 0, NULL) : NULL;
	if (attempt != NULL && list == NULL)
		attempt->excluded.is_asked = false;
	else if (attempt != NULL)
		wlbd_past_evictions_set(attempt, list);
	json_decref(list);
	free(context);
}

void wlbd_past_evictions_ask(struct wlbd_attempt *attempt)
{
	struct wlbd_params params = {0};
	struct wlbd_attempt_ref *ref = attempt->excluded.is_asked ? NULL : malloc(sizeof(*ref));
	if (ref == NULL)
		return;
	*ref = wlbd_attempt_ref(attempt);
	attempt->excluded.is_asked = true;
	wlbd_params_add_integer(&params, attempt->run_pk);
	wlbd_params_add_integer(&params, WLBD_EVICTIONS_MAX);
	wlbd_db_execute(attempt->wlbd->writes, "select wlb_run_evictions($1, $2)", &params, on_answer, ref);
}

bool wlbd_past_evictions_at_limit(const struct wlbd_attempt *attempt)
{
	const struct wlbd_excluded *excluded = &attempt->excluded;
	return excluded->used > 0 || (excluded->count > 0 && excluded->count >= excluded->max);
}
