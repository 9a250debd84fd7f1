/* On how many nodes a job that is requeued may start: never on more than it asks for. */
#include "coordinator/wlbd/rules/job_range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint32_t least_of(uint32_t node_count, struct wlbd_job_range_facts facts)
{
	const struct wlb_slurm_job job = {.job_id = 12, .node_count = node_count};
	return wlbd_job_least_nodes(&job, &facts);
}

static void lost_nodes_are_not_waited_for(void **state)
{
	(void)state;
	assert_int_equal(least_of(3, (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 1}), 2);
	assert_int_equal(least_of(2, (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 1}), 2);
	assert_int_equal(least_of(8, (struct wlbd_job_range_facts){.total_nodes = 8, .lost_nodes = 4, .min_nodes = 6}),
	                 6);
	assert_int_equal(least_of(2, (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 2, .resized_to = 2}),
	                 1);
}

static void a_job_that_needs_none_keeps_its_range(void **state)
{
	(void)state;
	assert_int_equal(least_of(3, (struct wlbd_job_range_facts){.total_nodes = 3}), 0);
	assert_int_equal(least_of(3, (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 3}), 0);
	assert_int_equal(least_of(2, (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 1, .resized_to = 2}),
	                 0);
	assert_int_equal(least_of(0, (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 1}), 0);
}

/* A client says that its attempt has 64 nodes. */
static void claims_give_a_job_no_nodes(void **state)
{
	(void)state;
	assert_int_equal(least_of(2, (struct wlbd_job_range_facts){.total_nodes = 64, .lost_nodes = 1}), 0);
	assert_int_equal(least_of(2, (struct wlbd_job_range_facts){.total_nodes = 64, .lost_nodes = 61}), 0);
	assert_int_equal(least_of(2, (struct wlbd_job_range_facts){.total_nodes = 64, .lost_nodes = 62}), 2);
	assert_int_equal(
		least_of(2, (struct wlbd_job_range_facts){.total_nodes = 64, .lost_nodes = 63, .min_nodes = 60}), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_nodes_are_not_waited_for),
		cmocka_unit_test(a_job_that_needs_none_keeps_its_range),
		cmocka_unit_test(claims_give_a_job_no_nodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
