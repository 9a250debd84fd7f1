/* Where the ranks of an attempt meet. */
#include "coordinator/wlb/run/rules/rendezvous.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void ports_are_below_those_of_the_kernel(void **state)
{
	static const struct {
		int ephemeral, least, most;
	} cases[] = {{32768, 26628, 32767},
	             {0, 26628, 32767},
	             {16384, 10245, 16383},
	             {1024, 26628, 32767},
	             {49152, 26628, 32767}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint32_t job = 1; job < 5000; job++) {
			int port = wlb_rendezvous_port(job, 1, 1, cases[i].ephemeral);
			assert_in_range(port, cases[i].least, cases[i].most);
			assert_int_not_equal(port, 29400);
			assert_int_not_equal(port, 29500);
		}
}

static void each_attempt_has_another_port(void **state)
{
	(void)state;
	for (uint32_t job = 1; job < 5000; job++)
		for (int attempt = 1; attempt < 5; attempt++)
			assert_int_not_equal(wlb_rendezvous_port(job, 1, attempt, 32768),
			                     wlb_rendezvous_port(job, 1, attempt + 1, 32768));
	assert_int_not_equal(wlb_rendezvous_port(4, 1, 1, 32768), wlb_rendezvous_port(4, 2, 1, 32768));
	assert_int_not_equal(wlb_rendezvous_port(4, 1, 1, 32768), wlb_rendezvous_port(5, 1, 1, 32768));
	assert_int_equal(wlb_rendezvous_port(4, 1, 1, 32768), wlb_rendezvous_port(4, 1, 1, 32768));
}

static void an_address_of_another_node_is_replaced(void **state)
{
	static const struct wlb_rendezvous_node job[] = {{"n1", "10.0.0.1"}, {"n2", "10.0.0.2"}, {"n11", NULL}};
	static const struct {
		const char *given;
		int first;
		bool is_elsewhere;
	} cases[] = {
		{"n1", 0, false},        {"n1.cluster", 0, false}, {"10.0.0.1", 0, false}, {"n1", 1, true},
		{"n1.cluster", 1, true}, {"10.0.0.1", 1, true},    {"n1-ib0", 1, false},   {"192.168.0.1", 1, false},
		{"localhost", 1, false}, {"n11", 0, true},         {"n11", 2, false},      {"n2", 2, true},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (wlb_rendezvous_is_elsewhere(cases[i].given, job, 3, &job[cases[i].first]) != cases[i].is_elsewhere)
			fail_msg("%s", cases[i].given);
}

/* As where all nodes of a test are one host. */
static void an_address_of_all_nodes_stays(void **state)
{
	static const struct wlb_rendezvous_node job[] = {{"n1", "127.0.0.1"}, {"n2", "127.0.0.1"}};
	(void)state;
	assert_false(wlb_rendezvous_is_elsewhere("127.0.0.1", job, 2, &job[1]));
	assert_true(wlb_rendezvous_is_elsewhere("n1", job, 2, &job[1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_are_below_those_of_the_kernel),
		cmocka_unit_test(each_attempt_has_another_port),
		cmocka_unit_test(an_address_of_another_node_is_replaced),
		cmocka_unit_test(an_address_of_all_nodes_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
