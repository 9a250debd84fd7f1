#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/liveness/attempts.h"
#include "coordinator/wlbd/wlbd.h"

static void ignore(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	(void)context;
}

static int begin(void **state)
{
	struct wlbd *wlbd = calloc(1, sizeof(*wlbd));
	wlbd->base = event_base_new();
	wlbd->attempts = wlbd_attempts_new(ignore);
	wlb_on_fault_init(&wlbd->config.on_fault);
	wlbd->config.on_fault.slow_by_percent = 25;
	*state = wlbd;
	return 0;
}

static int end(void **state)
{
	struct wlbd *wlbd = *state;
	wlbd_attempts_free(wlbd->attempts);
	event_base_free(wlbd->base);
	free(wlbd);
	return 0;
}

/* The attempt of a card, of run `run_pk`; on_fault NULL: the run's user said nothing. */
static struct wlbd_attempt *put(struct wlbd *wlbd, const char *uuid, int run_pk, const char *on_fault)
{
	json_t *card = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:[s], s:s?}", "attempt_id", uuid,
	                         "run", "12", "run_pk", run_pk, "attempt_pk", 1, "attempt", 1, "job_id", 12, "uid",
	                         1000, "confirmed", 1, "world_size", 2, "nodes", "n1", "on_fault", on_fault);
	struct wlbd_attempt *attempt = wlbd_attempts_put(wlbd, card);
	json_decref(card);
	assert_non_null(attempt);
	return attempt;
}

static void what_is_done_about_faults_is_that_of_the_run_over_that_of_the_cluster(void **state)
{
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *plain = put(wlbd, "a", 1, NULL);
	const struct wlbd_attempt *own = put(wlbd, "b", 2, "hang=report,hang-after=60");
	assert_int_equal(plain->on_fault.hang, WLB_FAULT_EVICT);
	assert_true(plain->on_fault.slow_by_percent == 25);
	assert_int_equal(own->on_fault.hang, WLB_FAULT_REPORT);
	assert_true(own->on_fault.hang_after_s == 60 && own->on_fault.slow_by_percent == 25);
}

static void a_setting_changes_all_attempts_of_its_run(void **state)
{
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *first = put(wlbd, "a", 1, "hang=report");
	const struct wlbd_attempt *second = put(wlbd, "b", 1, "hang=report");
	const struct wlbd_attempt *other = put(wlbd, "c", 2, "hang=report");
	wlbd_attempts_set_on_fault(wlbd, 1, "hang=evict,slow=evict");
	assert_int_equal(first->on_fault.hang, WLB_FAULT_EVICT);
	assert_int_equal(second->on_fault.slow, WLB_FAULT_EVICT);
	assert_int_equal(other->on_fault.hang, WLB_FAULT_REPORT);
}

static void a_text_that_cannot_be_read_leaves_the_defaults_of_the_cluster(void **state)
{
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *attempt = put(wlbd, "a", 1, "hang=report,of-a-later-release=7");
	assert_int_equal(attempt->on_fault.hang, WLB_FAULT_EVICT);
	assert_true(attempt->on_fault.slow_by_percent == 25);
}

/* Gives the attempt the nodes of its ranks as a card of the database has them. */
static void put_ranks(struct wlbd *wlbd, const char *uuid, int world_size, json_t *rank_nodes)
{
	json_t *card = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:o}", "attempt_id", uuid, "run", "12",
	                         "run_pk", 1, "attempt_pk", 1, "attempt", 1, "job_id", 12, "uid", 1000, "confirmed", 1,
	                         "world_size", world_size, "rank_nodes", rank_nodes);
	assert_non_null(wlbd_attempts_put(wlbd, card));
	json_decref(card);
}

static void a_map_of_more_nodes_than_the_job_has_leaves_the_ranks_as_they_were(void **state)
{
	static struct wlb_slurm_job job = {.running = true, .uid = 1000, .nodes = "n1"};
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *attempt = put(wlbd, "a", 1, NULL);
	wlbd_attempts_confirm(wlbd, 1, &job);
	put_ranks(wlbd, "a", 1, json_pack("[s]", "n1"));
	put_ranks(wlbd, "a", 60000, json_pack("[s,s]", "x", "y"));
	assert_int_equal(attempt->nodes.world_size, 1);
	assert_int_equal(attempt->nodes.mapped_ranks, 1);
	assert_true(wlbd_attempt_nodes_may_run(&attempt->nodes, "n1", 0));
	assert_false(wlbd_attempt_nodes_may_run(&attempt->nodes, "n1", 50000));
	assert_string_equal(wlbd_attempt_nodes_of_rank(&attempt->nodes, 0), "n1");
	assert_null(wlbd_attempt_nodes_of_rank(&attempt->nodes, 1));
	assert_null(wlbd_attempt_nodes_of_rank(&attempt->nodes, 50000));
}

static void ranks_are_recorded_on_nodes_of_the_job_or_of_the_attempt(void **state)
{
	static struct wlb_slurm_job job = {.running = true, .uid = 1000, .nodes = "n[1-2]"};
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *attempt = put(wlbd, "a", 1, NULL);
	put_ranks(wlbd, "a", 1, json_pack("[s]", "n3")); /* Slurm has taken it from the job since then */
	assert_true(wlbd_attempt_nodes_may_record(&attempt->nodes, "n9"));
	wlbd_attempts_confirm(wlbd, 1, &job);
	assert_true(wlbd_attempt_nodes_may_record(&attempt->nodes, "n1"));
	assert_true(wlbd_attempt_nodes_may_record(&attempt->nodes, "n3"));
	assert_false(wlbd_attempt_nodes_may_record(&attempt->nodes, "n9"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_done_about_faults_is_that_of_the_run_over_that_of_the_cluster,
	                                        begin, end),
		cmocka_unit_test_setup_teardown(a_setting_changes_all_attempts_of_its_run, begin, end),
		cmocka_unit_test_setup_teardown(a_text_that_cannot_be_read_leaves_the_defaults_of_the_cluster, begin,
	                                        end),
		cmocka_unit_test_setup_teardown(a_map_of_more_nodes_than_the_job_has_leaves_the_ranks_as_they_were,
	                                        begin, end),
		cmocka_unit_test_setup_teardown(ranks_are_recorded_on_nodes_of_the_job_or_of_the_attempt, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
