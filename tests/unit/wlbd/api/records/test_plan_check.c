#include "coordinator/wlbd/api/records/plan_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LAYOUT(tp, dp) "\"layout\":{\"tp\":" #tp ",\"cp\":1,\"pp\":1,\"dp\":" #dp "}"
#define AT(nodes, first, ranks)                                                                                        \
	"{\"switch\":\"s\",\"nodes\":\"" nodes "\",\"first_rank\":" #first ",\"ranks\":" #ranks "}"
#define PLACEMENT(entries) "\"placement\":[" entries "]"
#define IDLE(ranks, nodes) "\"idle_ranks\":" #ranks ",\"idle\":\"" nodes "\""
#define LOCAL(nodes, first, last)                                                                                      \
	"\"idle_local_ranks\":[{\"nodes\":\"" nodes "\",\"first\":" #first ",\"last\":" #last "}]"

static int check_text(const char *plan, struct wlb_error *error)
{
	json_t *data = json_loads(plan, 0, NULL);
	*error = (struct wlb_error){0};
	assert_non_null(data);
	int rc = wlbd_plan_check(data, error);
	assert_true(rc == 0 || error->message[0] != '\0');
	json_decref(data);
	return rc;
}

/* It is shown as it is: whether ranks are counted twice, or nodes are none, hurts nobody but who wrote it. */
static void any_placement_is_accepted(void **state)
{
	static const char *const cases[] = {
		LAYOUT(2, 4),
		LAYOUT(2, 4) ",\"idle_ranks\":0",
		LAYOUT(2, 3) "," IDLE(2, "n4"),
		LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 4) "," AT("n[2,4]", 4, 4)),
		LAYOUT(2, 3) "," IDLE(2, "n4") "," PLACEMENT(AT("n[1,3]", 0, 4) "," AT("n2", 4, 2)),
		LAYOUT(1, 2) "," IDLE(6, "n[2,4]") "," PLACEMENT(AT("n[1,3]", 0, 2)),
		LAYOUT(1, 5) ",\"idle_ranks\":1," LOCAL("n2", 2, 2) "," PLACEMENT(AT("n[1-2]", 0, 5)),
		LAYOUT(2, 2) ",\"idle_ranks\":2," LOCAL("n[1-2]", 2, 2) "," PLACEMENT(AT("n[1-2]", 0, 4)),
		LAYOUT(2, 1) "," IDLE(4, "n2") "," LOCAL("n1", 2, 2) "," PLACEMENT(AT("n1", 0, 2)),
		LAYOUT(1, 3) "," PLACEMENT(AT("n[1-2]", 0, 3)),
		LAYOUT(1, 3) ",\"idle_ranks\":1",
		LAYOUT(1, 3) "," IDLE(3, "n3") "," LOCAL("n2", 1, 1) "," PLACEMENT(AT("n[1-2]", 0, 3)),
		LAYOUT(1, 3) "," IDLE(1, "n3") "," PLACEMENT(AT("n[1-2]", 0, 3)),
		LAYOUT(4, 2),
		LAYOUT(2, 3),
		LAYOUT(2, 5),
		LAYOUT(2, 4) ",\"idle_ranks\":1",
		LAYOUT(1, 4),
		LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 4) "," AT("n[2,9]", 4, 4)),
		LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3,1,2]", 0, 8)),
		LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 4) "," AT("n[3,4]", 4, 4)),
		LAYOUT(2, 4) "," PLACEMENT(AT("n[1-1000000000]", 0, 8)),
		LAYOUT(2, 4) "," PLACEMENT(AT("n[1-9]", 0, 8)),
		LAYOUT(2, 4) "," PLACEMENT(AT("n\u00e9", 0, 8)),
		LAYOUT(1, 3) "," PLACEMENT(AT("n1,n1", 0, 3)),
		LAYOUT(1, 3) "," PLACEMENT(AT("n[1-9999]", 0, 3)),
		LAYOUT(1, 3) "," PLACEMENT(AT("n[1-3]", 0, 3)),
		LAYOUT(1, 3) "," PLACEMENT(AT("n[1,3]", 0, 3)),
		LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 4)),
		LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 4) "," AT("n[2,4]", 3, 4)),
		LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 1, 4)),
		LAYOUT(2, 4) "," PLACEMENT(AT("n[1,3]", 0, 3) "," AT("n[2,4]", 3, 5)),
		LAYOUT(1, 3) "," PLACEMENT(AT("n1", 0, 1) "," AT("n2", 1, 2)),
		LAYOUT(1, 3) "," PLACEMENT(AT("n[1-2]", 0, 4)),
		LAYOUT(1, 3) "," PLACEMENT(AT("n[1-4]", 0, 3)),
		LAYOUT(2, 3) "," IDLE(2, "n[2,4]"),
		LAYOUT(2, 3) "," IDLE(2, "n9"),
		LAYOUT(2, 3) "," IDLE(2, "n4,n4"),
		LAYOUT(2, 3) "," IDLE(2, "n4") "," PLACEMENT(AT("n[1,3-4]", 0, 6)),
		LAYOUT(1, 5) ",\"idle_ranks\":1," LOCAL("n2", 2, 3),
		LAYOUT(1, 5) ",\"idle_ranks\":1," LOCAL("n2", 2, 1),
		LAYOUT(1, 5) ",\"idle_ranks\":1," LOCAL("n2", 1, 2),
		LAYOUT(1, 4) ",\"idle_ranks\":2," LOCAL("n2,n2", 2, 2),
		LAYOUT(1, 2) "," IDLE(4, "n2") "," LOCAL("n2", 0, 0),
		LAYOUT(1, 5) ",\"idle_ranks\":1," LOCAL("n2", 2, 2) "," PLACEMENT(AT("n1", 0, 2) "," AT("n2", 2, 3)),
		LAYOUT(1, 3) "," IDLE(3, "n2"),
		LAYOUT(1, 3) "," IDLE(3, "n3") "," LOCAL("n1", 1, 1),
		LAYOUT(1, 8192) "," PLACEMENT(AT("n[1-8192]", 0, 8192)),
		LAYOUT(1, 100) "," PLACEMENT(AT("n1,n3...", 0, 100)),
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_error error;
		char plan[2048];
		snprintf(plan, sizeof(plan), "{%s}", cases[i]);
		if (check_text(plan, &error) != 0)
			fail_msg("%s: %s", plan, error.message);
	}
}

/* Appends `entry` so often, with commas between. */
static void repeat(char *text, const char *entry, int count)
{
	char *end = text + strlen(text);
	for (int i = 0; i < count; i++)
		end += sprintf(end, "%s%s", i > 0 ? "," : "", entry);
}

static void its_size_is_bounded(void **state)
{
	static char text[65536];
	char names[4200] = "";
	struct wlb_error error;
	(void)state;
	for (int count = 64; count <= 65; count++) {
		strcpy(text, "{" LAYOUT(1, 1) ",\"placement\":[");
		repeat(text, AT("n1", 0, 1), count);
		strcat(text, "]}");
		assert_int_equal(check_text(text, &error), count == 64 ? 0 : -1);
	}
	assert_non_null(strstr(error.message, "placement"));
	repeat(names, "n", 2049); /* 4,097 bytes */
	snprintf(text, sizeof(text), "{" LAYOUT(1, 1) "," IDLE(1, "%s") "}", names);
	assert_int_equal(check_text(text, &error), -1);
	assert_non_null(strstr(error.message, "idle"));
	names[4000] = '\0';
	strcpy(text, "{" LAYOUT(1, 1) ",\"placement\":[");
	for (int i = 0; i < 5; i++)
		sprintf(text + strlen(text), "%s{\"switch\":\"s\",\"nodes\":\"%s\",\"first_rank\":0,\"ranks\":1}",
		        i > 0 ? "," : "", names);
	strcat(text, "]}");
	assert_int_equal(check_text(text, &error), -1);
	assert_non_null(strstr(error.message, "plan"));
}

static void numbers_of_a_placement_are_bounded(void **state)
{
	static const struct {
		const char *fields, *message;
	} cases[] = {
		{LAYOUT(1, 3) "," PLACEMENT(AT("n1", -1, 3)), "first_rank"},
		{LAYOUT(1, 3) "," PLACEMENT(AT("n1", 0, 0)), "ranks"},
		{LAYOUT(1, 3) "," PLACEMENT(AT("n1", 0, 1048577)), "ranks"},
		{LAYOUT(1, 3) "," LOCAL("n1", 0, 1048577), "last"},
		{LAYOUT(1, 3) ",\"idle_ranks\":-1", "idle_ranks"},
		{LAYOUT(1048576, 2), "2097152"},
		{LAYOUT(1, 3) "," PLACEMENT("7"), "must be an object"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_error error;
		char plan[2048];
		snprintf(plan, sizeof(plan), "{%s}", cases[i].fields);
		assert_int_equal(check_text(plan, &error), -1);
		if (strstr(error.message, cases[i].message) == NULL)
			fail_msg("'%s' is not in: %s", cases[i].message, error.message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_placement_is_accepted),
		cmocka_unit_test(its_size_is_bounded),
		cmocka_unit_test(numbers_of_a_placement_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
