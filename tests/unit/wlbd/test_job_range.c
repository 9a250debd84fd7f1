/* On how many nodes a job that is queued again may start: never on more than it asks for. */
#include "coordinator/wlbd/liveness/job_range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct wlb_slurm_job asks(uint32_t least_nodes, uint32_t most_nodes)
{
	return (struct wlb_slurm_job){.job_id = 12, .least_nodes = least_nodes, .most_nodes = most_nodes};
}

static void assert_range(struct wlb_slurm_job job, struct wlbd_job_range_facts facts, uint32_t least, uint32_t most)
{
	struct wlbd_job_range range;
	assert_true(wlbd_job_range_find(&job, &facts, &range));
	assert_int_equal(range.least, least);
	assert_int_equal(range.most, most);
}

static void assert_unchanged(struct wlb_slurm_job job, struct wlbd_job_range_facts facts)
{
	struct wlbd_job_range range;
	assert_false(wlbd_job_range_find(&job, &facts, &range));
}

static void lost_nodes_are_not_waited_for(void **state)
{
	(void)state;
	assert_range(asks(3, 3), (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 1}, 2, 3);
	assert_range(asks(8, 8), (struct wlbd_job_range_facts){.total_nodes = 8, .lost_nodes = 4, .min_nodes = 6}, 6,
	             8);
	assert_range(asks(2, 3), (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 2, .resized_to = 2}, 1,
	             3);
	assert_range(asks(3, 0), (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 1}, 2, 3);
}

static void a_job_that_needs_none_keeps_its_range(void **state)
{
	(void)state;
	assert_unchanged(asks(3, 3), (struct wlbd_job_range_facts){.total_nodes = 3});
	assert_unchanged(asks(3, 3), (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 3});
	assert_unchanged(asks(2, 3), (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 1, .resized_to = 2});
	assert_unchanged(asks(1, 3), (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 1});
	assert_unchanged(asks(0, 0), (struct wlbd_job_range_facts){.total_nodes = 3, .lost_nodes = 1});
}

/* A client says that its attempt has 64 nodes. */
static void claims_give_a_job_no_nodes(void **state)
{
	(void)state;
	assert_unchanged(asks(2, 2), (struct wlbd_job_range_facts){.total_nodes = 64, .lost_nodes = 1});
	assert_range(asks(2, 2), (struct wlbd_job_range_facts){.total_nodes = 64, .lost_nodes = 63}, 1, 2);
	assert_range(asks(2, 0), (struct wlbd_job_range_facts){.total_nodes = 64, .lost_nodes = 63}, 1, 2);
	assert_unchanged(asks(2, 2),
	                 (struct wlbd_job_range_facts){.total_nodes = 64, .lost_nodes = 63, .min_nodes = 60});
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
