/* Prints what wlbd has judged of a fault, for found_fault.py:
 *
 *     judge_fault '{"kind": "rank_lost", "rank": 3, "node": "n2", "detail": "", "proof": {"exit_code": 137}}'
 *
 * "broken_at" is when a broken step was, in seconds since 1970.
 */
#include <stdio.h>
#include <string.h>

#include "coordinator/wlbd/rules/cause.h"

static bool is_set(const json_t *proof, const char *key)
{
	return json_is_true(json_object_get(proof, key));
}

static double seconds(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static struct wlbd_fault read_fault(const json_t *json)
{
	const json_t *proof = json_object_get(json, "proof"), *rank = json_object_get(json, "rank");
	const char *kind = json_string_value(json_object_get(json, "kind"));
	struct wlbd_fault fault = {.rank = json_is_integer(rank) ? (int)json_integer_value(rank) : -1,
	                           .node = json_string_value(json_object_get(json, "node")),
	                           .detail = json_string_value(json_object_get(json, "detail")),
	                           .eviction = json_string_value(json_object_get(proof, "evicted")),
	                           .exit_code = (int)json_integer_value(json_object_get(proof, "exit_code")),
	                           .is_first = is_set(proof, "first"),
	                           .is_after_end = is_set(proof, "after_end"),
	                           .is_step_broken = is_set(proof, "step_broken"),
	                           .since_s = seconds(proof, "alive_at") + seconds(proof, "during") +
	                                      seconds(json, "broken_at")};
	while (fault.kind < WLB_FAULT_KIND_COUNT && strcmp(wlb_faults[fault.kind].name, kind) != 0)
		fault.kind++;
	return fault;
}

int main(int argc, char **argv)
{
	json_t *json = argc > 1 ? json_loads(argv[1], 0, NULL) : NULL;
	struct wlbd_fault fault = read_fault(json);
	if (fault.kind == WLB_FAULT_KIND_COUNT) {
		fprintf(stderr, "judge_fault: unknown kind\n");
		return 1;
	}
	json_t *judged = wlbd_cause_judge(&fault);
	json_dumpf(judged, stdout, JSON_COMPACT);
	json_decref(judged);
	json_decref(json);
	return 0;
}
