#include "coordinator/slurm/slurm_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/slurm/fake_slurm.h"

enum { NODES = 8192 };

/* The list of every second of NODES nodes: what Slurm writes of a job whose nodes lie apart. */
static char *list_of_scattered_nodes(void)
{
	char **names = calloc(NODES / 2, sizeof(*names));
	for (int i = 0; i < NODES / 2; i++)
		assert_true(asprintf(&names[i], "node%05d", 2 * i) > 0);
	char *list = wlb_hostlist_fold(names, NODES / 2, NULL);
	wlb_strings_free(names, NODES / 2);
	return list;
}

static void a_job_whose_nodes_lie_apart_is_known(void **state)
{
	struct wlb_slurm_job job;
	struct wlb_error error;
	char **names;
	int count;
	(void)state;
	char *list = list_of_scattered_nodes();
	assert_true(strlen(list) > NODES);
	fake_slurm_job = (slurm_job_info_t){.job_state = JOB_RUNNING, .user_id = 1000, .end_time = 5, .nodes = list};
	fake_slurm_set_job_id(12);
	assert_int_equal(wlb_slurm_job(12, &job, &error), 1);
	assert_true(job.running);
	assert_int_equal(job.uid, 1000);
	assert_int_equal(job.end_time, 5);
	assert_string_equal(job.nodes, list);
	assert_int_equal(wlb_hostlist_expand(job.nodes, &names, &count, &error), 0);
	assert_int_equal(count, NODES / 2);
	wlb_strings_free(names, count);
	wlb_slurm_job_free(&job);
	free(list);
}

static void a_job_without_nodes_has_an_empty_list(void **state)
{
	struct wlb_slurm_job job;
	(void)state;
	fake_slurm_job = (slurm_job_info_t){.job_state = JOB_PENDING, .num_nodes = 3};
	fake_slurm_set_job_id(12);
	assert_int_equal(wlb_slurm_job(12, &job, NULL), 1);
	assert_string_equal(job.nodes, "");
	assert_int_equal(job.node_count, 3);
	wlb_slurm_job_free(&job);
}

/* Slurm answers for the first job of an array with all of them. */
static void another_job_is_not_found(void **state)
{
	struct wlb_slurm_job job;
	(void)state;
	fake_slurm_set_job_id(12);
	assert_int_equal(wlb_slurm_job(13, &job, NULL), 0);
	wlb_slurm_job_free(&job);
}

static void a_copy_outlives_the_job(void **state)
{
	struct wlb_slurm_job job, copy;
	(void)state;
	fake_slurm_job = (slurm_job_info_t){.job_state = JOB_RUNNING, .nodes = "n[1-2]", .partition = "gpu"};
	fake_slurm_set_job_id(12);
	assert_int_equal(wlb_slurm_job(12, &job, NULL), 1);
	assert_int_equal(wlb_slurm_job_copy(&copy, &job, NULL), 0);
	wlb_slurm_job_free(&job);
	assert_string_equal(copy.nodes, "n[1-2]");
	assert_string_equal(copy.partition, "gpu");
	wlb_slurm_job_free(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_whose_nodes_lie_apart_is_known),
		cmocka_unit_test(a_job_without_nodes_has_an_empty_list),
		cmocka_unit_test(another_job_is_not_found),
		cmocka_unit_test(a_copy_outlives_the_job),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
