#include "coordinator/wlbd/rules/cause.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ABSENT = -1 };

static const double SINCE_S = 1800000000.25;

static double number_of(const json_t *judged, const char *key)
{
	const json_t *value = json_object_get(judged, key);
	return value == NULL ? ABSENT : json_number_value(value);
}

static void each_fault_is_judged_alone(void **state)
{
	static const struct {
		struct wlbd_fault fault;
		int strength;
		double late_s, follow_s;
		const char *sentence;
	} cases[] = {
		{{.kind = WLB_FAULT_RANK_LOST, .rank = 3, .node = "n2", .exit_code = 128 + SIGKILL, .is_first = true},
	         WLBD_CAUSE_FIRST_ENDED,
	         ABSENT,
	         2,
	         "rank 3 on n2 was killed by signal 9"},
		{{.kind = WLB_FAULT_RANK_LOST, .rank = 3, .node = "n2", .exit_code = 128 + SIGTERM},
	         WLBD_CAUSE_ENDED,
	         ABSENT,
	         2,
	         "rank 3 on n2 was killed by signal 15"},
		{{.kind = WLB_FAULT_RANK_LOST, .rank = 3, .node = "n2", .exit_code = 128 + SIGSEGV},
	         WLBD_CAUSE_ENDED,
	         ABSENT,
	         0,
	         "rank 3 on n2 was killed by signal 11"},
		{{.kind = WLB_FAULT_RANK_LOST, .rank = 0, .node = "n1", .exit_code = 7},
	         WLBD_CAUSE_ENDED,
	         ABSENT,
	         0,
	         "rank 0 on n1 ended with exit code 7"},
		{{.kind = WLB_FAULT_RANK_LOST, .rank = 0, .node = "n1", .is_first = true},
	         WLBD_CAUSE_GONE,
	         ABSENT,
	         ABSENT,
	         "rank 0 on n1 is lost"},
		{{.kind = WLB_FAULT_RANK_LOST, .rank = 2}, WLBD_CAUSE_GONE, ABSENT, ABSENT, "rank 2 is lost"},
		{{.kind = WLB_FAULT_RANK_LOST, .rank = -1, .node = "n1"},
	         WLBD_CAUSE_GONE,
	         ABSENT,
	         ABSENT,
	         "a rank on n1 is lost"},
		{{.kind = WLB_FAULT_NODE_LOST, .rank = -1, .node = "n3"},
	         WLBD_CAUSE_NODE,
	         ABSENT,
	         ABSENT,
	         "node n3 is lost"},
		{{.kind = WLB_FAULT_NODE_LOST, .rank = -1}, WLBD_CAUSE_NODE, ABSENT, ABSENT, "a node is lost"},
		{{.kind = WLB_FAULT_NODE_LOST, .rank = -1, .node = "n3", .is_after_end = true},
	         ABSENT,
	         ABSENT,
	         ABSENT,
	         "node n3 is lost"},
		{{.kind = WLB_FAULT_LAUNCHER_LOST, .rank = -1, .node = "n1", .detail = "job 7 is over"},
	         WLBD_CAUSE_KILLED,
	         ABSENT,
	         ABSENT,
	         "wlb run on n1 was killed"},
		{{.kind = WLB_FAULT_LAUNCHER_LOST, .rank = -1},
	         WLBD_CAUSE_KILLED,
	         ABSENT,
	         ABSENT,
	         "wlb run was killed"},
		{{.kind = WLB_FAULT_SCRIPT_LOST, .rank = -1, .detail = "the script was killed by signal 9"},
	         WLBD_CAUSE_KILLED,
	         3,
	         ABSENT,
	         "the script was killed by signal 9"},
		{{.kind = WLB_FAULT_STEP_FAILED, .rank = -1, .detail = "srun was killed", .is_step_broken = true},
	         WLBD_CAUSE_KILLED,
	         ABSENT,
	         ABSENT,
	         "srun was killed"},
		{{.kind = WLB_FAULT_STEP_FAILED, .rank = -1, .detail = "it\nended with exit code 1"},
	         WLBD_CAUSE_STEP,
	         ABSENT,
	         ABSENT,
	         "it ended with exit code 1"},
		{{.kind = WLB_FAULT_HANG, .rank = 1, .node = "n1", .detail = "it waits", .eviction = "rank 1 hangs"},
	         WLBD_CAUSE_EVICTED,
	         ABSENT,
	         ABSENT,
	         "rank 1 hangs"},
		{{.kind = WLB_FAULT_HANG, .rank = 1, .node = "n1", .detail = "it waits"},
	         WLBD_CAUSE_GONE,
	         ABSENT,
	         ABSENT,
	         "hang: it waits"},
		{{.kind = WLB_FAULT_SLOW_RANK, .rank = 1, .detail = ""}, WLBD_CAUSE_GONE, ABSENT, ABSENT, "slow_rank"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *judged = wlbd_cause_judge(&cases[i].fault);
		assert_string_equal(json_string_value(json_object_get(judged, "sentence")), cases[i].sentence);
		assert_float_equal(number_of(judged, "strength"), cases[i].strength, 0);
		assert_float_equal(number_of(judged, "late_s"), cases[i].late_s, 0);
		assert_float_equal(number_of(judged, "follow_s"), cases[i].follow_s, 0);
		json_decref(judged);
	}
}

/* The time from which a fault explains others, if it explains any; JSON's null where that is not known. */
static void what_explains_others_has_a_time(void **state)
{
	static const struct {
		struct wlbd_fault fault;
		const char *key; /* NULL: it explains nothing */
		double before_s;
	} cases[] = {
		{{.kind = WLB_FAULT_NODE_LOST, .node = "n3"}, "lost_from", 0.5},
		{{.kind = WLB_FAULT_NODE_LOST, .node = "n3", .is_after_end = true}, NULL, 0},
		{{.kind = WLB_FAULT_LAUNCHER_LOST}, "killed_at", 0},
		{{.kind = WLB_FAULT_SCRIPT_LOST, .detail = ""}, "killed_at", 0},
		{{.kind = WLB_FAULT_STEP_FAILED, .detail = "", .is_step_broken = true}, "killed_at", 0},
		{{.kind = WLB_FAULT_STEP_FAILED, .detail = ""}, NULL, 0},
		{{.kind = WLB_FAULT_RANK_LOST, .node = "n1", .exit_code = 7}, NULL, 0},
		{{.kind = WLB_FAULT_HANG, .detail = "", .eviction = "rank 1 hangs"}, NULL, 0},
	};
	static const char *const keys[] = {"killed_at", "lost_from"};
	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlbd_fault fault = cases[i / 2].fault;
		fault.since_s = i % 2 == 0 ? 0 : SINCE_S;
		json_t *judged = wlbd_cause_judge(&fault);
		for (size_t k = 0; k < 2; k++) {
			const json_t *time = json_object_get(judged, keys[k]);
			bool is_there = cases[i / 2].key != NULL && strcmp(keys[k], cases[i / 2].key) == 0;
			assert_int_equal(time != NULL, is_there);
			if (is_there && fault.since_s == 0)
				assert_true(json_is_null(time));
			else if (is_there)
				assert_float_equal(json_number_value(time), SINCE_S - cases[i / 2].before_s, 1e-6);
		}
		json_decref(judged);
	}
}

static void ranks_that_may_end_after_their_launcher(void **state)
{
	static const struct {
		int exit_code, follow_ms;
	} cases[] = {{0, WLBD_FOLLOW_MS},
	             {1, 0},
	             {128 + SIGKILL, WLBD_FOLLOW_MS},
	             {128 + SIGTERM, WLBD_FOLLOW_MS},
	             {128 + SIGPIPE, WLBD_FOLLOW_MS},
	             {128 + SIGSEGV, 0}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(wlbd_cause_follow_ms(cases[i].exit_code), cases[i].follow_ms);
}

static void a_long_detail_is_cut(void **state)
{
	char detail[2 * WLBD_SENTENCE_SIZE];
	struct wlbd_fault fault = {.kind = WLB_FAULT_STEP_FAILED, .rank = -1, .detail = detail};
	(void)state;
	memset(detail, 'x', sizeof(detail) - 1);
	detail[sizeof(detail) - 1] = '\0';
	json_t *judged = wlbd_cause_judge(&fault);
	assert_int_equal(json_string_length(json_object_get(judged, "sentence")), WLBD_SENTENCE_SIZE - 1);
	json_decref(judged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fault_is_judged_alone),
		cmocka_unit_test(what_explains_others_has_a_time),
		cmocka_unit_test(ranks_that_may_end_after_their_launcher),
		cmocka_unit_test(a_long_detail_is_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
