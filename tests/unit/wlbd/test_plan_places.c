#include "coordinator/wlbd/requests/plan_places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/requests/plan_check.h"

/* What wlbd knows of the attempt, as wlb_attempt_places of the schema says it. */
#define DECIDED "{\"nodes\":[\"n1\",\"n3\",\"n2\",\"n4\"],\"tasks_per_node\":2,\"ranks_on\":null}"
#define DECIDED_OF_3 "{\"nodes\":[\"n1\",\"n2\"],\"tasks_per_node\":3,\"ranks_on\":null}"
#define RECORDED "{\"nodes\":null,\"tasks_per_node\":null,\"ranks_on\":{\"n1\":2,\"n2\":1}}"
#define BOTH "{\"nodes\":[\"n1\",\"n2\",\"n3\"],\"tasks_per_node\":2,\"ranks_on\":{\"n1\":2,\"n2\":1}}"
#define UNKNOWN "{\"nodes\":null,\"tasks_per_node\":null,\"ranks_on\":null}"

#define LAYOUT(tp, dp) "\"layout\":{\"tp\":" #tp ",\"cp\":1,\"pp\":1,\"dp\":" #dp "}"
#define AT(nodes, first, ranks)                                                                                        \
	"{\"switch\":\"s\",\"nodes\":\"" nodes "\",\"first_rank\":" #first ",\"ranks\":" #ranks "}"
#define PLACEMENT(entries) "\"placement\":[" entries "]"
#define IDLE(ranks, nodes) "\"idle_ranks\":" #ranks ",\"idle\":\"" nodes "\""
#define LOCAL(nodes, first, last)                                                                                      \
	"\"idle_local_ranks\":[{\"nodes\":\"" nodes "\",\"first\":" #first ",\"last\":" #last "}]"

static int check_text(const char *facts, const char *plan, struct wlb_error *error)
{
	struct wlbd_attempt_places places;
	json_t *result = json_loads(facts, 0, NULL), *data = json_loads(plan, 0, NULL);
	*error = (struct wlb_error){0};
	assert_non_null(result);
	assert_non_null(data);
	assert_int_equal(wlbd_plan_check(data, error), 0);
	assert_int_equal(wlbd_attempt_places_read(result, &places, error), 0);
	int names_left = wlbd_plan_names_most(&places);
	int rc = wlbd_plan_places_check(data, &places, &names_left, error);
	assert_true(names_left >= 0);
	assert_true(rc == 0 || error->message[0] != '\0');
	wlbd_attempt_places_free(&places);
	json_decref(data);
	json_decref(result);
	return rc;
}

static void plans_of_the_attempt_are_accepted(void **state)
{
	static const struct {
		const char *facts, *fields;
	} cases[] = {
		/* As clients before `placement`, and those that plan without switches, send them. */
		{DECIDED, LAYOUT(2, 4)},
		{DECIDED, LAYOUT(2, 4) ",\"idle_ranks\":0"},
		{DECIDED, LAYOUT(2, 3) "," IDLE(2, "n4")},
		{DECIDED, LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 4) "," AT("n[2,4]", 4, 4))},
		{DECIDED, LAYOUT(2, 3) "," IDLE(2, "n4") "," PLACEMENT(AT("n[1,3]", 0, 4) "," AT("n2", 4, 2))},
		/* A client that named only whole nodes: each of two nodes has a task that is not named. */
		{DECIDED, LAYOUT(1, 2) "," IDLE(6, "n[2,4]") "," PLACEMENT(AT("n[1,3]", 0, 2))},
		{DECIDED_OF_3, LAYOUT(1, 5) ",\"idle_ranks\":1," LOCAL("n2", 2, 2) "," PLACEMENT(AT("n[1-2]", 0, 5))},
		{DECIDED_OF_3,
	         LAYOUT(2, 2) ",\"idle_ranks\":2," LOCAL("n[1-2]", 2, 2) "," PLACEMENT(AT("n[1-2]", 0, 4))},
		{DECIDED_OF_3, LAYOUT(2, 1) "," IDLE(4, "n2") "," LOCAL("n1", 2, 2) "," PLACEMENT(AT("n1", 0, 2))},
		{RECORDED, LAYOUT(1, 3) "," PLACEMENT(AT("n[1-2]", 0, 3))},
		{RECORDED, LAYOUT(1, 3) ",\"idle_ranks\":1"},
		{BOTH, LAYOUT(1, 3) "," IDLE(3, "n3") "," LOCAL("n2", 1, 1) "," PLACEMENT(AT("n[1-2]", 0, 3))},
		{UNKNOWN, LAYOUT(1, 3) "," PLACEMENT(AT("n[1-2]", 0, 3))},
		{UNKNOWN, LAYOUT(1, 3) "," IDLE(1, "n3") "," PLACEMENT(AT("n[1-2]", 0, 3))},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_error error;
		char plan[2048];
		snprintf(plan, sizeof(plan), "{%s}", cases[i].fields);
		if (check_text(cases[i].facts, plan, &error) != 0)
			fail_msg("%s: %s", plan, error.message);
	}
}

static void others_are_refused_with_value_and_rule(void **state)
{
	static const struct {
		const char *facts, *fields, *message;
	} cases[] = {
		{DECIDED, LAYOUT(4, 2), "tp 4 must be at most the 2 tasks of a node"},
		{DECIDED, LAYOUT(2, 3), "layout of 6 ranks, 0 idle: must be 8 together, 2 tasks on each of 4 nodes"},
		{DECIDED, LAYOUT(2, 5), "layout of 10 ranks, 0 idle: must be 8 together"},
		{DECIDED, LAYOUT(2, 4) ",\"idle_ranks\":1", "layout of 8 ranks, 1 idle: must be 8 together"},
		{RECORDED, LAYOUT(1, 4), "layout of 4 ranks: must be the 3 that rank 0 recorded"},
		/* Nodes that are not the attempt's, twice there, or that are no names. */
		{DECIDED, LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 4) "," AT("n[2,9]", 4, 4)),
	         "placement[1]: n9 is none of the attempt's 4 nodes"},
		{DECIDED, LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3,1,2]", 0, 8)), "n1 is in placement[0] too"},
		{DECIDED, LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 4) "," AT("n[3,4]", 4, 4)),
	         "placement[1]: n3 is in placement[0] too"},
		{DECIDED, LAYOUT(2, 4) "," PLACEMENT(AT("n[1-1000000000]", 0, 8)), "placement[0]: nodes: byte 15"},
		{DECIDED, LAYOUT(2, 4) "," PLACEMENT(AT("n[1-9]", 0, 8)), "more than 8 names"},
		{DECIDED, LAYOUT(2, 4) "," PLACEMENT(AT("n\u00e9", 0, 8)), "byte 2, after 'n': must be a letter"},
		{UNKNOWN, LAYOUT(1, 3) "," PLACEMENT(AT("n1,n1", 0, 3)), "n1 is in placement[0] too"},
		{UNKNOWN, LAYOUT(1, 3) "," PLACEMENT(AT("n[1-9999]", 0, 3)), "more than 8192 names"},
		{RECORDED, LAYOUT(1, 3) "," PLACEMENT(AT("n[1-3]", 0, 3)), "n3 is none of the attempt's 2 nodes"},
		{RECORDED, LAYOUT(1, 3) "," PLACEMENT(AT("n[1,3]", 0, 3)), "n3 is none of the attempt's 2 nodes"},
		/* Each rank once. */
		{DECIDED, LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 4)), "placement: 4 ranks: must be the 8"},
		{DECIDED, LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 4) "," AT("n[2,4]", 3, 4)),
	         "placement[1]: first_rank: 3 must be 4"},
		{DECIDED, LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 1, 4)), "first_rank: 1 must be 0"},
		{DECIDED, LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 3) "," AT("n[2,4]", 3, 5)),
	         "placement[0]: ranks: 3 must be 4, as many as"},
		{RECORDED, LAYOUT(1, 3) "," PLACEMENT(AT("n1", 0, 1) "," AT("n2", 1, 2)),
	         "placement[0]: ranks: 1 must be 2"},
		{UNKNOWN, LAYOUT(1, 3) "," PLACEMENT(AT("n[1-2]", 0, 4)), "placement: 4 ranks: must be the 3"},
		{UNKNOWN, LAYOUT(1, 3) "," PLACEMENT(AT("n[1-4]", 0, 3)), "ranks: 3 must be from 4 to 16384"},
		/* What is idle has no rank, and is named once. */
		{DECIDED, LAYOUT(2, 3) "," IDLE(2, "n[2,4]"),
	         "idle_ranks: 2, and 'idle' and 'idle_local_ranks' name 4"},
		{DECIDED, LAYOUT(2, 3) "," IDLE(2, "n9"), "idle: n9 is none of the attempt's"},
		{DECIDED, LAYOUT(2, 3) "," IDLE(2, "n4,n4"), "idle: n4 is there twice"},
		{DECIDED, LAYOUT(2, 3) "," IDLE(2, "n4") "," PLACEMENT(AT("n[1,3-4]", 0, 6)), "n4 is in 'idle' too"},
		{DECIDED_OF_3, LAYOUT(1, 5) ",\"idle_ranks\":1," LOCAL("n2", 2, 3),
	         "last: 3 must be below the 3 tasks"},
		{DECIDED_OF_3, LAYOUT(1, 5) ",\"idle_ranks\":1," LOCAL("n2", 2, 1),
	         "last: 1 must not be below 'first'"},
		{DECIDED_OF_3, LAYOUT(1, 5) ",\"idle_ranks\":1," LOCAL("n2", 1, 2), "idle_local_ranks' name 2 ranks"},
		{DECIDED_OF_3, LAYOUT(1, 4) ",\"idle_ranks\":2," LOCAL("n2,n2", 2, 2), "n2 is there twice"},
		{DECIDED_OF_3, LAYOUT(1, 2) "," IDLE(4, "n2") "," LOCAL("n2", 0, 0), "n2 is in 'idle' too"},
		{DECIDED_OF_3,
	         LAYOUT(1, 5) ",\"idle_ranks\":1," LOCAL("n2", 2, 2) "," PLACEMENT(AT("n1", 0, 2) "," AT("n2", 2, 3)),
	         "placement[0]: ranks: 2 must be 3"},
		{BOTH, LAYOUT(1, 3) "," IDLE(3, "n2"), "idle: n2 must have no rank, and rank 0 recorded 1 there"},
		{BOTH, LAYOUT(1, 3) "," IDLE(3, "n3") "," LOCAL("n1", 1, 1), "n1 must have 1 ranks at most"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_error error;
		char plan[2048];
		snprintf(plan, sizeof(plan), "{%s}", cases[i].fields);
		assert_int_equal(check_text(cases[i].facts, plan, &error), -1);
		if (strstr(error.message, cases[i].message) == NULL)
			fail_msg("'%s' is not in: %s", cases[i].message, error.message);
	}
}

/* `wlb run` cuts the nodes of a switch at 160 bytes; what can be read of them is checked all the same. */
static void lists_that_were_cut_are_read_up_to_there(void **state)
{
	char facts[4096] = "{\"tasks_per_node\":1,\"ranks_on\":null,\"nodes\":[", nodes[256] = "n[", plan[1024];
	struct wlb_error error;
	(void)state;
	for (int i = 0; i < 100; i++)
		snprintf(facts + strlen(facts), sizeof(facts) - strlen(facts), "%s\"n%d\"", i > 0 ? "," : "",
		         2 * i + 1);
	strcat(facts, "]}");
	for (int i = 0; strlen(nodes) < 160; i++)
		snprintf(nodes + strlen(nodes), sizeof(nodes) - strlen(nodes), "%s%d", i > 0 ? "," : "", 2 * i + 1);
	strcpy(nodes + 157, "...");
	snprintf(plan, sizeof(plan), "{" LAYOUT(1, 100) "," PLACEMENT(AT("%s", 0, 100)) "}", nodes);
	if (check_text(facts, plan, &error) != 0)
		fail_msg("%s: %s", plan, error.message);
	nodes[2] = '0'; /* n0 is none of them */
	snprintf(plan, sizeof(plan), "{" LAYOUT(1, 100) "," PLACEMENT(AT("%s", 0, 100)) "}", nodes);
	assert_int_equal(check_text(facts, plan, &error), -1);
	assert_non_null(strstr(error.message, "n0 is none of the attempt's 100 nodes"));
	nodes[2] = '1';
	snprintf(plan, sizeof(plan), "{" LAYOUT(1, 100) "," PLACEMENT(AT("%s", 0, 10) "," AT("n199", 10, 90)) "}",
	         nodes);
	assert_int_equal(check_text(facts, plan, &error), -1);
	assert_non_null(strstr(error.message, "placement[0]: ranks: 10 must be from"));
	assert_int_equal(check_text(facts, "{" LAYOUT(1, 100) "," PLACEMENT(AT("n1,n3...", 0, 100)) "}", &error), -1);
	assert_non_null(strstr(error.message, "n3... is none of the attempt's"));
}

/* The plans of one delivery together name a bounded number of nodes. */
static void names_are_counted_down(void **state)
{
	const char *text = "{" LAYOUT(1, 8192) "," PLACEMENT(AT("n[1-8192]", 0, 8192)) "}";
	struct wlbd_attempt_places places = {0};
	struct wlb_error error = {0};
	json_t *plan = json_loads(text, 0, NULL);
	int names_left = wlbd_plan_names_most(&places), accepted = 0;
	(void)state;
	while (wlbd_plan_places_check(plan, &places, &names_left, &error) == 0)
		accepted++;
	assert_int_equal(accepted, 4); /* each is read twice: the attempt's nodes are not known */
	assert_non_null(strstr(error.message, "more than 0 names"));
	json_decref(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_of_the_attempt_are_accepted),
		cmocka_unit_test(others_are_refused_with_value_and_rule),
		cmocka_unit_test(lists_that_were_cut_are_read_up_to_there),
		cmocka_unit_test(names_are_counted_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
