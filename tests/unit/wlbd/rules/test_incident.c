#include "coordinator/wlbd/rules/incident.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/wlbd/rules/cause.h"
#include "coordinator/wlbd/rules/decision.h"

enum { GRACE_MS = 2000 };

static struct wlbd_finding findings[WLBD_SYMPTOMS_MAX + WLBD_CONSEQUENCES_MAX];

static struct wlbd_symptom *add(struct wlbd_incident *incident, enum wlbd_symptom_kind kind, const char *node, int rank,
                                int64_t at_ms, enum wlbd_node_state node_state)
{
	struct wlbd_symptom *symptom = wlbd_incident_add(incident, kind, node, rank, at_ms);
	assert_non_null(symptom);
	symptom->node_state = node_state;
	return symptom;
}

static int judge(const struct wlbd_incident *incident, int64_t now_ms, int *count)
{
	return (int)wlbd_incident_judge(incident, now_ms, GRACE_MS, findings, count);
}

static void test_nothing_happened(void **state)
{
	struct wlbd_incident incident = {0};
	int count;
	(void)state;
	assert_int_equal(judge(&incident, 0, &count), WLBD_JUDGE_NOTHING);
}

static void test_lost_node_is_the_cause_of_all(void **state)
{
	struct wlbd_incident incident = {0};
	int count;
	(void)state;
	add(&incident, WLBD_RANK_GONE, "n1", 1, 1000, WLBD_NODE_ALIVE); /* noticed first, but it followed */
	add(&incident, WLBD_CLOSED, "n3", 4, 1010, WLBD_NODE_ASKED);
	add(&incident, WLBD_CLOSED, "n3", WLBD_LAUNCHER, 1010, WLBD_NODE_ASKED);
	assert_int_equal(judge(&incident, 5000, &count), WLBD_JUDGE_LATER);
	incident.symptoms[1].node_state = WLBD_NODE_LOST;
	incident.symptoms[2].node_state = WLBD_NODE_LOST;
	assert_int_equal(judge(&incident, 1100, &count), WLBD_JUDGE_LATER); /* more may come */
	assert_int_equal(judge(&incident, 1000 + WLBD_GATHER_MS, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 2);
	assert_int_equal(findings[0].what, WLBD_FOUND_NODE);
	assert_string_equal(findings[0].symptom->node, "n3");
	assert_int_equal(findings[1].what, WLBD_FOUND_RANK);
	assert_int_equal(findings[1].symptom->rank, 1);
	wlbd_incident_clear(&incident);
}

static void test_closed_connection_has_time_to_come_back(void **state)
{
	struct wlbd_incident incident = {0};
	int count;
	(void)state;
	struct wlbd_symptom *symptom = add(&incident, WLBD_CLOSED, "n2", 2, 1000, WLBD_NODE_ALIVE);
	assert_int_equal(judge(&incident, 1000 + GRACE_MS - 1, &count), WLBD_JUDGE_LATER);
	assert_int_equal(judge(&incident, 1000 + GRACE_MS, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 1);
	assert_int_equal(findings[0].what, WLBD_FOUND_RANK);
	assert_int_equal(findings[0].symptom->rank, 2);
	symptom->withdrawn = true;
	assert_int_equal(judge(&incident, 1000 + GRACE_MS, &count), WLBD_JUDGE_NOTHING);
	wlbd_incident_clear(&incident);
}

/* It was not answered for some seconds: its client pauses. */
static void test_process_that_was_cut_off_has_more_time(void **state)
{
	struct wlbd_incident incident = {0};
	int count;
	(void)state;
	add(&incident, WLBD_CLOSED, "n1", WLBD_LAUNCHER, 1000, WLBD_NODE_ALIVE)->cut_off = true;
	assert_int_equal(judge(&incident, 1000 + WLBD_CUT_OFF_GRACE_MS - 1, &count), WLBD_JUDGE_LATER);
	assert_int_equal(judge(&incident, 1000 + WLBD_CUT_OFF_GRACE_MS, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(findings[0].what, WLBD_FOUND_LAUNCHER);
	wlbd_incident_clear(&incident);
}

static void test_end_of_step_makes_the_first_one_the_cause(void **state)
{
	struct wlbd_incident incident = {.life = {WLBD_ATTEMPT_ENDED, .exit_code = 137}};
	int count;
	(void)state;
	add(&incident, WLBD_CLOSED, "n2", 2, 1000, WLBD_NODE_ALIVE);
	add(&incident, WLBD_CLOSED, "n1", 0, 1200, WLBD_NODE_ALIVE); /* Slurm took it away with the step */
	assert_int_equal(judge(&incident, 1300, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 1);
	assert_int_equal(findings[0].symptom->rank, 2);
	wlbd_incident_clear(&incident);
}

static void test_steps_that_end_by_themselves_lose_nobody(void **state)
{
	static const int codes[] = {0, WLBD_EXIT_BAD_INPUT, WLBD_EXIT_ORDERED, WLBD_EXIT_SAVED};
	int count;
	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct wlbd_incident incident = {.life = {WLBD_ATTEMPT_ENDED, .exit_code = codes[i]}};
		add(&incident, WLBD_CLOSED, "n2", 2, 1000, WLBD_NODE_ALIVE);
		assert_int_equal(judge(&incident, 1300, &count), WLBD_JUDGE_NOTHING);
		add(&incident, WLBD_CLOSED, "n3", 4, 1000, WLBD_NODE_LOST);
		assert_int_equal(judge(&incident, 1300, &count), WLBD_JUDGE_FAULTS);
		assert_int_equal(count, 1);
		assert_int_equal(findings[0].what, WLBD_FOUND_NODE);
		wlbd_incident_clear(&incident);
	}
}

static void test_killed_launcher_takes_its_ranks_along(void **state)
{
	struct wlbd_incident incident = {0};
	int count;
	(void)state;
	add(&incident, WLBD_CLOSED, "n1", WLBD_LAUNCHER, 1000, WLBD_NODE_ALIVE);
	add(&incident, WLBD_RANK_GONE, "n1", 1, 1200, WLBD_NODE_ALIVE)->exit_code = 143;
	add(&incident, WLBD_RANK_GONE, "n2", 2, 1210, WLBD_NODE_ALIVE);
	assert_int_equal(judge(&incident, 1000 + GRACE_MS - 1, &count), WLBD_JUDGE_LATER); /* it may come back */
	assert_int_equal(judge(&incident, 1000 + GRACE_MS, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 1);
	assert_int_equal(findings[0].what, WLBD_FOUND_LAUNCHER);
	assert_string_equal(findings[0].symptom->node, "n1");
	incident.life.exit_code = 137;
	incident.life.state =
		WLBD_ATTEMPT_ENDED; /* it said how the step ended: it had no need of its connection any more */
	assert_int_equal(judge(&incident, 1000 + GRACE_MS, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(findings[0].what, WLBD_FOUND_RANK);
	wlbd_incident_clear(&incident);
}

static void test_launcher_killed_after_a_rank_is_not_the_cause(void **state)
{
	struct wlbd_incident incident = {0};
	int count;
	(void)state;
	add(&incident, WLBD_RANK_GONE, "n2", 2, 1000, WLBD_NODE_ALIVE)->exit_code = 139;
	add(&incident, WLBD_CLOSED, "n1", WLBD_LAUNCHER, 1500, WLBD_NODE_ALIVE);
	assert_int_equal(judge(&incident, 1500 + GRACE_MS, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 2);
	assert_int_equal(findings[0].symptom->rank, 2);
	assert_int_equal(findings[1].what, WLBD_FOUND_LAUNCHER);
	wlbd_incident_clear(&incident);
}

static void test_ranks_of_a_killed_srun_followed_it(void **state)
{
	struct wlbd_incident incident = {.life = {WLBD_ATTEMPT_ENDED, .exit_code = 137, .srun_signal = 9}};
	int count;
	(void)state;
	add(&incident, WLBD_RANK_GONE, "n2", 2, 1000, WLBD_NODE_ALIVE)->exit_code = 137;
	add(&incident, WLBD_CLOSED, "n1", 0, 1000, WLBD_NODE_ALIVE);
	assert_int_equal(judge(&incident, 9000, &count), WLBD_JUDGE_NOTHING);
	wlbd_incident_clear(&incident);
}

static void test_ranks_of_a_failed_launch_followed_it(void **state)
{
	struct wlbd_incident incident = {.launch_failure = {.node = "n3", .why = "no credential"}};
	int count;
	(void)state;
	add(&incident, WLBD_RANK_GONE, "n2", 2, 1000, WLBD_NODE_ALIVE)->exit_code = 137;
	assert_int_equal(judge(&incident, 9000, &count), WLBD_JUDGE_NOTHING);
	add(&incident, WLBD_RANK_GONE, "n1", 0, 1000, WLBD_NODE_ALIVE)->exit_code = 139;
	assert_int_equal(judge(&incident, 9000, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(findings[0].symptom->rank, 0);
	wlbd_incident_clear(&incident);
}

/* A rank that fails in its own code is the cause, unless it is certain that no rank can be. */
static void test_ranks_that_slurm_ended(void **state)
{
	(void)state;
	for (int certain = 0; certain < 2; certain++) {
		struct wlbd_incident incident = {.slurm_end_ms = 1100,
		                                 .slurm_end = {.why = "cancelled", .is_certain = certain}};
		int count;
		add(&incident, WLBD_RANK_GONE, "n2", 2, 1000, WLBD_NODE_ALIVE)->exit_code = 137;
		add(&incident, WLBD_RANK_GONE, "n2", 3, 9000, WLBD_NODE_ALIVE)->exit_code = 143;
		assert_int_equal(judge(&incident, 19000, &count), WLBD_JUDGE_NOTHING);
		add(&incident, WLBD_RANK_GONE, "n1", 0, 1000, WLBD_NODE_ALIVE)->exit_code = 7;
		assert_int_equal(judge(&incident, 19000, &count), certain ? WLBD_JUDGE_NOTHING : WLBD_JUDGE_FAULTS);
		add(&incident, WLBD_RANK_GONE, "n1", 1, 100, WLBD_NODE_ALIVE)->exit_code = 139;
		assert_int_equal(judge(&incident, 19000, &count), WLBD_JUDGE_FAULTS);
		assert_int_equal(count, certain ? 1 : 2);
		add(&incident, WLBD_SILENT, "n3", 4, 1200, WLBD_NODE_LOST);
		assert_int_equal(judge(&incident, 19000, &count), WLBD_JUDGE_FAULTS);
		assert_int_equal(findings[0].what, WLBD_FOUND_NODE);
		wlbd_incident_clear(&incident);
	}
}

static void test_told_exits(void **state)
{
	struct wlbd_incident incident = {0};
	int count;
	(void)state;
	add(&incident, WLBD_CLOSED, "n4", 6, 990, WLBD_NODE_ALIVE);
	add(&incident, WLBD_RANK_GONE, "n1", 1, 1000, WLBD_NODE_ALIVE)->exit_code = 134; /* MPI aborted it */
	add(&incident, WLBD_RANK_GONE, "n3", 5, 1000 + WLBD_SAME_MOMENT_MS, WLBD_NODE_ALIVE)->exit_code = 137;
	add(&incident, WLBD_RANK_GONE, "n2", 3, 1300, WLBD_NODE_ALIVE)->exit_code = 137; /* Slurm ended it */
	assert_int_equal(judge(&incident, 1400, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(findings[0].symptom->rank, 5);
	assert_int_equal(count, 3);
	wlbd_incident_clear(&incident);
}

static void test_sigterm_waits_for_the_word_of_the_launcher(void **state)
{
	struct wlbd_incident incident = {0};
	int count;
	(void)state;
	add(&incident, WLBD_RANK_GONE, "n1", 1, 1000, WLBD_NODE_ALIVE)->exit_code = 143;
	assert_int_equal(judge(&incident, 1000 + GRACE_MS - 1, &count), WLBD_JUDGE_LATER);
	assert_int_equal(judge(&incident, 1000 + GRACE_MS, &count), WLBD_JUDGE_FAULTS);
	incident.life.state = WLBD_ATTEMPT_ENDED;
	incident.life.exit_code = WLBD_EXIT_ORDERED; /* cancelled */
	assert_int_equal(judge(&incident, 1001, &count), WLBD_JUDGE_NOTHING);
	wlbd_incident_clear(&incident);
}

static void test_broken_pipe_waits_for_its_cause(void **state)
{
	struct wlbd_incident incident = {0};
	int count;
	(void)state;
	add(&incident, WLBD_RANK_GONE, "n1", 1, 1000, WLBD_NODE_ALIVE)->exit_code = 141;
	assert_int_equal(judge(&incident, 1000 + GRACE_MS - 1, &count), WLBD_JUDGE_LATER);
	assert_int_equal(judge(&incident, 1000 + GRACE_MS, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(findings[0].symptom->rank, 1);
	add(&incident, WLBD_RANK_GONE, "n2", 2, 1800, WLBD_NODE_ALIVE)->exit_code = 139;
	assert_int_equal(judge(&incident, 1800, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(findings[0].symptom->rank, 2);
	wlbd_incident_clear(&incident);
}

static void test_rank_then_node(void **state)
{
	struct wlbd_incident incident = {0};
	int count;
	(void)state;
	add(&incident, WLBD_RANK_GONE, "n2", 2, 1000, WLBD_NODE_ALIVE)->exit_code = 137;
	struct wlbd_symptom *node = add(&incident, WLBD_CLOSED, "n3", 4, 2500, WLBD_NODE_LOST);
	node->alive_ms = 2500; /* it was there long after that rank's end */
	assert_int_equal(judge(&incident, 9000, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 2);
	assert_int_equal(findings[0].what, WLBD_FOUND_RANK);
	assert_int_equal(findings[1].what, WLBD_FOUND_NODE);
	node->alive_ms = 1000 + WLBD_ALIVE_MS; /* that rank may have aborted since the node was gone */
	judge(&incident, 9000, &count);
	assert_int_equal(findings[0].what, WLBD_FOUND_NODE);
	wlbd_incident_clear(&incident);
}

static void test_wrong_input_of_a_rank_ends_the_others(void **state)
{
	struct wlbd_incident incident = {.deliberate_ms = 1000};
	int count;
	(void)state;
	add(&incident, WLBD_RANK_GONE, "n2", 2, 1100, WLBD_NODE_ALIVE)->exit_code = 137;
	assert_int_equal(judge(&incident, 9000, &count), WLBD_JUDGE_NOTHING);
	wlbd_incident_clear(&incident);
}

static void test_gone_rank_needs_no_grace(void **state)
{
	struct wlbd_incident incident = {0};
	int count;
	(void)state;
	add(&incident, WLBD_RANK_GONE, "n3", 5, 1000, WLBD_NODE_ALIVE);
	add(&incident, WLBD_CLOSED, "n3", 4, 1200, WLBD_NODE_ALIVE);
	assert_int_equal(judge(&incident, 1000 + WLBD_GATHER_MS, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 1);
	assert_int_equal(findings[0].symptom->rank, 5);
	wlbd_incident_clear(&incident);
}

static void test_rank_that_srun_saw_first_is_the_cause(void **state)
{
	struct wlbd_incident incident = {.life = {WLBD_ATTEMPT_ENDED, .exit_code = 137}};
	int count;
	(void)state;
	add(&incident, WLBD_CLOSED, "n3", 4, 1000, WLBD_NODE_ALIVE); /* the neighbour followed before it told */
	add(&incident, WLBD_RANK_GONE, "n1", 1, 1010, WLBD_NODE_ALIVE);
	struct wlbd_symptom *first = add(&incident, WLBD_RANK_GONE, "n3", 5, 1200, WLBD_NODE_ASKED);
	first->first = true;
	assert_int_equal(judge(&incident, 1200, &count), WLBD_JUDGE_LATER);
	first->node_state = WLBD_NODE_ALIVE;
	assert_int_equal(judge(&incident, 1200, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 2);
	assert_int_equal(findings[0].symptom->rank, 5);
	assert_int_equal(findings[1].symptom->rank, 1);
	wlbd_incident_clear(&incident);
}

/* srun saw rank 2 end first, rank 0 had ended before, and Slurm ended rank 1. */
static void test_broken_pipe_is_not_the_cause(void **state)
{
	static const struct {
		int first_code, code, late_ms, cause;
	} cases[] = {
		{141, 139, 0, 0}, {141, 139, 900, 0}, {141, 137, 0, 0}, {141, 137, 900, 2},
		{141, 1, 0, 0},   {141, 1, 900, 2},   {141, 143, 0, 2}, {137, 139, 0, 2},
		{134, 139, 0, 2}, {1, 137, 0, 2},     {141, 141, 0, 2},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int order = 0; order < 2; order++) {
			struct wlbd_incident incident = {.life = {WLBD_ATTEMPT_ENDED, .exit_code = 141}};
			int count, code[3] = {cases[i].code, 143, cases[i].first_code};
			for (int n = 0; n < 3; n++) {
				int rank = order == 0 ? n : 2 - n;
				struct wlbd_symptom *s =
					add(&incident, WLBD_RANK_GONE, "n1", rank,
				            rank == 0 ? 1000 + cases[i].late_ms : 1000, WLBD_NODE_ALIVE);
				s->exit_code = code[rank];
				s->first = rank == 2;
			}
			assert_int_equal(judge(&incident, 2000, &count), WLBD_JUDGE_FAULTS);
			assert_int_equal(count, 3);
			assert_int_equal(findings[0].symptom->rank, cases[i].cause);
			wlbd_incident_clear(&incident);
		}
}

static void test_lost_node_explains_the_rank_that_srun_saw_first(void **state)
{
	struct wlbd_incident incident = {.life = {WLBD_ATTEMPT_ENDED, .exit_code = 137}};
	int count;
	(void)state;
	add(&incident, WLBD_RANK_GONE, "n3", 5, 1000, WLBD_NODE_LOST)->first = true;
	assert_int_equal(judge(&incident, 1000, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 1);
	assert_int_equal(findings[0].what, WLBD_FOUND_NODE);
	wlbd_incident_clear(&incident);
}

static void test_settled_incident_has_news_of_nodes_only(void **state)
{
	struct wlbd_incident incident = {.settled = true};
	int count;
	(void)state;
	add(&incident, WLBD_CLOSED, "n1", 0, 1000, WLBD_NODE_ALIVE);
	assert_int_equal(judge(&incident, 1000 + WLBD_GATHER_MS, &count), WLBD_JUDGE_NOTHING);
	add(&incident, WLBD_CLOSED, "n2", 2, 1000, WLBD_NODE_LOST);
	assert_int_equal(judge(&incident, 1000 + WLBD_GATHER_MS, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 1);
	assert_int_equal(findings[0].what, WLBD_FOUND_NODE);
	wlbd_incident_clear(&incident);
}

/* Whatever is noticed first. */
static void test_node_lost_after_the_end_is_not_the_cause(void **state)
{
	struct wlbd_incident incident = {.life = {WLBD_ATTEMPT_ENDED, .exit_code = 1}};
	int count;
	(void)state;
	add(&incident, WLBD_SILENT, "n4", 6, 1000, WLBD_NODE_LOST)->after_end = true;
	assert_int_equal(judge(&incident, 1000, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 1);
	assert_true(findings[0].symptom->after_end);
	add(&incident, WLBD_RANK_GONE, "n4", 7, 1010, WLBD_NODE_LOST)->exit_code = 1;
	incident.symptoms[1].node_state = WLBD_NODE_ALIVE;
	assert_int_equal(judge(&incident, 1010, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 2);
	assert_int_equal(findings[0].what, WLBD_FOUND_RANK);
	assert_string_equal(findings[1].symptom->node, "n4");
	add(&incident, WLBD_SILENT, "n3", 4, 1020, WLBD_NODE_LOST);
	assert_int_equal(judge(&incident, 1020, &count), WLBD_JUDGE_FAULTS);
	assert_int_equal(count, 3);
	assert_string_equal(findings[0].symptom->node, "n3");
	assert_string_equal(findings[2].symptom->node, "n4");
	wlbd_incident_clear(&incident);
}

static void test_same_symptom_once_and_not_too_many(void **state)
{
	struct wlbd_incident incident = {0};
	(void)state;
	struct wlbd_symptom *first = wlbd_incident_add(&incident, WLBD_SILENT, "n1", 0, 1);
	assert_non_null(first);
	assert_ptr_equal(wlbd_incident_add(&incident, WLBD_SILENT, "n1", 0, 2), first);
	assert_int_equal(incident.count, 1);
	for (int rank = 1; rank < WLBD_SYMPTOMS_MAX; rank++)
		assert_non_null(wlbd_incident_add(&incident, WLBD_SILENT, "n1", rank, 3));
	assert_null(wlbd_incident_add(&incident, WLBD_SILENT, "n1", WLBD_SYMPTOMS_MAX, 3));
	assert_int_equal(incident.opened_ms, 1);
	wlbd_incident_clear(&incident);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_happened),
		cmocka_unit_test(test_lost_node_is_the_cause_of_all),
		cmocka_unit_test(test_closed_connection_has_time_to_come_back),
		cmocka_unit_test(test_process_that_was_cut_off_has_more_time),
		cmocka_unit_test(test_end_of_step_makes_the_first_one_the_cause),
		cmocka_unit_test(test_steps_that_end_by_themselves_lose_nobody),
		cmocka_unit_test(test_killed_launcher_takes_its_ranks_along),
		cmocka_unit_test(test_launcher_killed_after_a_rank_is_not_the_cause),
		cmocka_unit_test(test_ranks_of_a_killed_srun_followed_it),
		cmocka_unit_test(test_ranks_of_a_failed_launch_followed_it),
		cmocka_unit_test(test_ranks_that_slurm_ended),
		cmocka_unit_test(test_told_exits),
		cmocka_unit_test(test_sigterm_waits_for_the_word_of_the_launcher),
		cmocka_unit_test(test_rank_then_node),
		cmocka_unit_test(test_wrong_input_of_a_rank_ends_the_others),
		cmocka_unit_test(test_gone_rank_needs_no_grace),
		cmocka_unit_test(test_rank_that_srun_saw_first_is_the_cause),
		cmocka_unit_test(test_broken_pipe_is_not_the_cause),
		cmocka_unit_test(test_broken_pipe_waits_for_its_cause),
		cmocka_unit_test(test_lost_node_explains_the_rank_that_srun_saw_first),
		cmocka_unit_test(test_settled_incident_has_news_of_nodes_only),
		cmocka_unit_test(test_node_lost_after_the_end_is_not_the_cause),
		cmocka_unit_test(test_same_symptom_once_and_not_too_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
