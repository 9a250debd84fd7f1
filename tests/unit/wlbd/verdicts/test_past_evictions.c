#include "coordinator/wlbd/verdicts/past_evictions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "coordinator/wlbd/verdicts/found_verdicts.h"
#include "coordinator/wlbd/wlbd.h"

static void ignore(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	(void)context;
}

/* An attempt on these nodes of a job of eight, of which two may be excluded; what is slow is to be excluded. */
static struct wlbd_attempt *attempt_on(struct wlbd *wlbd, const char *nodes)
{
	struct wlbd_names names = {0};
	json_t *list = json_array();
	*wlbd = (struct wlbd){.base = event_base_new(), .attempts = wlbd_attempts_new(ignore)};
	wlb_on_fault_init(&wlbd->config.on_fault);
	assert_int_equal(wlbd_names_from_hostlist(&names, nodes), 0);
	for (int i = 0; i < names.count; i++)
		json_array_append_new(list, json_string(names.list[i]));
	json_t *attempt_json =
		json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:o, s:s}", "attempt_id", "a", "run", "12",
	                  "run_pk", 1, "attempt_pk", 1, "attempt", 1, "job_id", 12, "uid", 1000, "confirmed", 1,
	                  "world_size", names.count, "nodes", list, "on_fault", "hang=evict,slow=evict,corrupt=evict");
	struct wlbd_attempt *attempt = wlbd_attempts_put(wlbd, attempt_json);
	json_decref(attempt_json);
	wlbd_names_free(&names);
	assert_non_null(attempt);
	assert_int_equal(wlbd_names_from_hostlist(&attempt->nodes.allocation, "n[1-8]"), 0);
	attempt->nodes.allocation_known = true;
	return attempt;
}

static void end(struct wlbd *wlbd)
{
	wlbd_attempts_free(wlbd->attempts);
	event_base_free(wlbd->base);
}

/* Evictions of these nodes, one letter each, the newest first. */
static void set(struct wlbd_attempt *attempt, const char *nodes)
{
	json_t *list = json_array();
	for (const char *at = nodes; *at != '\0'; at++)
		json_array_append_new(list, json_pack("{s:o, s:s, s:i, s:f}", "node", json_sprintf("n%c", *at), "kind",
		                                      "slow_rank", "step", 5, "age_s", 60.0));
	wlbd_past_evictions_set(attempt, list);
	json_decref(list);
}

static void as_many_as_may_be_are_excluded(void **state)
{
	struct wlbd wlbd;
	struct wlbd_attempt *attempt = attempt_on(&wlbd, "n[3-8]");
	(void)state;
	assert_int_equal(wlbd_verdict_action(attempt, WLB_VERDICT_SLOW_NODE), WLB_FAULT_EVICT);
	set(attempt, "21");
	assert_true(attempt->excluded.is_known);
	assert_int_equal(attempt->excluded.count, 2);
	assert_true(wlbd_past_evictions_at_limit(attempt));
	assert_int_equal(wlbd_verdict_action(attempt, WLB_VERDICT_SLOW_NODE), WLB_FAULT_REPORT);
	assert_int_equal(wlbd_verdict_action(attempt, WLB_VERDICT_BAD_VALUES), WLB_FAULT_REPORT);
	assert_int_equal(wlbd_verdict_action(attempt, WLB_VERDICT_HANG), WLB_FAULT_EVICT); /* nothing moves */
	end(&wlbd);
}

static void one_more_may_be_excluded(void **state)
{
	struct wlbd wlbd;
	struct wlbd_attempt *attempt = attempt_on(&wlbd, "n[2-8]");
	(void)state;
	set(attempt, "1");
	assert_int_equal(attempt->excluded.count, 1);
	assert_int_equal(wlbd_verdict_action(attempt, WLB_VERDICT_SLOW_NODE), WLB_FAULT_EVICT);
	end(&wlbd);
}

/* The layout needs a node that was evicted: without a further node there would be no other. */
static void a_run_that_needs_an_evicted_node_is_not_ended_for_another(void **state)
{
	struct wlbd wlbd;
	struct wlbd_attempt *attempt = attempt_on(&wlbd, "n[1-8]");
	(void)state;
	set(attempt, "3");
	assert_int_equal(attempt->excluded.count, 0);
	assert_int_equal(attempt->excluded.used, 1);
	assert_int_equal(wlbd_verdict_action(attempt, WLB_VERDICT_SLOW_NODE), WLB_FAULT_REPORT);
	assert_int_equal(wlbd_verdict_action(attempt, WLB_VERDICT_HANG), WLB_FAULT_EVICT);
	end(&wlbd);
}

/* The node was needed again, or the newest two stay out. */
static void a_node_that_the_attempt_uses_is_not_excluded(void **state)
{
	struct wlbd wlbd;
	struct wlbd_attempt *attempt = attempt_on(&wlbd, "n[2-8]");
	(void)state;
	set(attempt, "12");
	assert_int_equal(attempt->excluded.count, 1);
	assert_int_equal(attempt->excluded.used, 1);
	set(attempt, "123");
	assert_int_equal(attempt->excluded.count, 1);
	set(attempt, "");
	assert_int_equal(attempt->excluded.count, 0);
	assert_int_equal(attempt->excluded.used, 0);
	assert_true(attempt->excluded.is_known);
	assert_false(wlbd_past_evictions_at_limit(attempt));
	end(&wlbd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_as_may_be_are_excluded),
		cmocka_unit_test(one_more_may_be_excluded),
		cmocka_unit_test(a_run_that_needs_an_evicted_node_is_not_ended_for_another),
		cmocka_unit_test(a_node_that_the_attempt_uses_is_not_excluded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
