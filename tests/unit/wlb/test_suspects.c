/* What the check of a node found reaches the coordinator, also one that is unavailable as the check ends. */
#include "coordinator/wlb/run/check/suspects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/run/state/record.h"

static int answer;      /* status of the coordinator's next replies; 0: it does not answer */
static int requests;    /* that were sent */
static char sent[2048]; /* the last of them */
static int steps;       /* checks that were started */
static char words[512]; /* of the last of them */
static const char *type_of_n3;
static const char failed[] = "{\"healthy\":false,\"reason\":\"memory: 1 bit\",\"checks\":[]}";
static const char *printed = failed; /* by each step */
static char events[2048];
static struct wlb_run_suspects checks;

json_t *__wrap_wlb_api_request(struct wlb_connection *connection, const char *method, const char *path,
                               const json_t *body, int timeout_ms, int *status, struct wlb_error *error);
int __wrap_wlb_check_step_start(const sigset_t *signals, const struct wlb_check_command *command,
                                struct wlb_check_step *step, struct wlb_error *error);
enum wlb_check_progress __wrap_wlb_check_step_poll(struct wlb_check_step *step);
int __wrap_wlb_check_step_end(struct wlb_check_step *step, char **text);
void __wrap_wlb_run_record_event(struct wlb_reporter *reporter, const char *kind, const char *detail);
int __wrap_wlb_slurm_nodes(struct wlb_slurm_node **nodes, int *count, struct wlb_error *error);

json_t *__wrap_wlb_api_request(struct wlb_connection *connection, const char *method, const char *path,
                               const json_t *body, int timeout_ms, int *status, struct wlb_error *error)
{
	char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
	(void)connection;
	(void)timeout_ms;
	snprintf(sent, sizeof(sent), "%s %s %s", method, path, text);
	free(text);
	requests++;
	*status = answer;
	if (answer == 200)
		return json_object();
	wlb_fail(error, "status %d", answer);
	return NULL;
}

int __wrap_wlb_check_step_start(const sigset_t *signals, const struct wlb_check_command *command,
                                struct wlb_check_step *step, struct wlb_error *error)
{
	(void)signals;
	(void)error;
	step->srun = 1;
	words[0] = '\0';
	for (int i = 0; command->words[i] != NULL; i++) {
		size_t length = strlen(words);
		snprintf(words + length, sizeof(words) - length, "%s ", command->words[i]);
	}
	steps++;
	return 0;
}

enum wlb_check_progress __wrap_wlb_check_step_poll(struct wlb_check_step *step)
{
	(void)step;
	return WLB_CHECK_STEP_ENDED;
}

int __wrap_wlb_check_step_end(struct wlb_check_step *step, char **text)
{
	step->srun = 0;
	*text = strdup(printed);
	return 1;
}

void __wrap_wlb_run_record_event(struct wlb_reporter *reporter, const char *kind, const char *detail)
{
	size_t length = strlen(events);
	(void)reporter;
	snprintf(events + length, sizeof(events) - length, "%s %s\n", kind, detail);
}

/* n1 and n2 have H100s. */
int __wrap_wlb_slurm_nodes(struct wlb_slurm_node **nodes, int *count, struct wlb_error *error)
{
	static const char *const names[] = {"n1", "n2", "n3"};
	(void)error;
	*count = 3;
	*nodes = calloc(3, sizeof(**nodes));
	assert_non_null(*nodes);
	for (int i = 0; i < *count; i++) {
		snprintf((*nodes)[i].name, sizeof((*nodes)[i].name), "%s", names[i]);
		snprintf((*nodes)[i].gpu_type, sizeof((*nodes)[i].gpu_type), "%s", i < 2 ? "h100" : type_of_n3);
	}
	return 0;
}

/* An attempt that leaves n3 and n4 out; the check of n3 has ended. */
static void begin(struct wlb_run *run, struct wlb_attempt *attempt, int first_answer)
{
	*run = (struct wlb_run){.id = "12", .suspects = &checks};
	*attempt = (struct wlb_attempt){.id = "a", .suspects = json_pack("[s, s]", "n3", "n4"), .exit_code = 75};
	answer = first_answer;
	requests = steps = 0;
	events[0] = '\0';
	wlb_run_suspects_begin(run, attempt, NULL);
	run->suspects->begin_ms = wlb_clock_ms();
	wlb_run_suspects_check(run, attempt);
	assert_int_equal(steps, 1);
	wlb_run_suspects_check(run, attempt);
	assert_int_equal(requests, 1);
	assert_string_equal(sent, "POST /v1/runs/12/node_checks {\"attempt_id\":\"a\",\"checks\":[],\"healthy\":false,"
	                          "\"node\":\"n3\",\"reason\":\"memory: 1 bit\"}");
}

static void end(struct wlb_run *run, struct wlb_attempt *attempt)
{
	wlb_run_suspects_end(run, attempt);
	assert_null(run->suspects->nodes);
	assert_null(run->suspects->unsent);
	json_decref(attempt->suspects);
}

static void what_is_not_taken_is_sent_again(void **state)
{
	static const int failures[] = {0, 500, 503};
	struct wlb_run run;
	struct wlb_attempt attempt;
	char first[sizeof(sent)];
	(void)state;
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		begin(&run, &attempt, failures[i]);
		memcpy(first, sent, sizeof(first));
		wlb_run_suspects_check(&run, &attempt); /* not yet; the check of the next node begins */
		assert_int_equal(requests, 1);
		assert_int_equal(steps, 2);
		for (int try = 2; try <= 4; try++) {
			answer = try < 4 ? failures[i] : 200;
			run.suspects->next_send_ms = wlb_clock_ms();
			wlb_run_suspects_check(&run, &attempt);
			assert_int_equal(requests, try);
			assert_string_equal(sent, first);
		}
		wlb_run_suspects_check(&run, &attempt); /* what was found of the next node meanwhile */
		assert_int_equal(requests, 5);
		assert_non_null(strstr(sent, "\"node\":\"n4\""));
		assert_int_equal(steps, 2);
		assert_string_equal(events, "");
		end(&run, &attempt);
	}
}

static void what_is_taken_or_refused_is_sent_once(void **state)
{
	static const int answers[] = {200, 403};
	struct wlb_run run;
	struct wlb_attempt attempt;
	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		begin(&run, &attempt, answers[i]);
		wlb_run_suspects_check(&run, &attempt);
		assert_int_equal(steps, 2);
		end(&run, &attempt);
		assert_int_equal(requests, 1);
	}
}

/* As by a TaskProlog and a TaskEpilog. */
static void lines_of_the_site_are_skipped(void **state)
{
	struct wlb_run run;
	struct wlb_attempt attempt;
	char text[256];
	(void)state;
	snprintf(text, sizeof(text), "welcome {to} the cluster\n\n%s\ngood bye\n", failed);
	printed = text;
	begin(&run, &attempt, 200);
	printed = failed;
	end(&run, &attempt);
	assert_string_equal(events, "");
}

static void the_last_try_is_before_the_next_attempt(void **state)
{
	static const struct {
		int exit_code, last_answer, requests;
		bool stopped, cancelled;
		const char *events;
	} cases[] = {
		{75, 200, 2, false, false, ""},
		{0, 200, 2, true, false, ""},
		{75, 503, 2, false, false,
	         "node_not_checked n3 could not be checked: what its check found is not recorded: status 503\n"},
		{0, 200, 1, false, false,
	         "node_not_checked n3 could not be checked: what its check found is not recorded: the coordinator is "
	         "unavailable\n"},
		{143, 200, 1, false, true,
	         "node_not_checked n3 could not be checked: what its check found is not recorded: the coordinator is "
	         "unavailable\n"},
	};
	struct wlb_run run;
	struct wlb_attempt attempt;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&run, &attempt, 0);
		attempt.exit_code = cases[i].exit_code;
		attempt.stopped = cases[i].stopped;
		run.cancelled = cases[i].cancelled;
		answer = cases[i].last_answer;
		end(&run, &attempt);
		assert_int_equal(requests, cases[i].requests);
		assert_string_equal(events, cases[i].events);
	}
}

#define CHECK "check-node --json --disk-mib 4 --disk-mib-per-s 1 "

/* The machine file of the attempt's nodes says nothing of a node with other GPUs: it would fail, and be drained. */
static void the_speed_of_other_gpus_is_not_compared(void **state)
{
	static const struct {
		const char *type;
		bool is_compared;
	} cases[] = {{"h100", true}, {"", true}, {"a100", false}};
	char *names[] = {"n1", "n2"};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_run run = {.id = "12", .suspects = &checks, .job.gpus_per_node = 8};
		struct wlb_attempt attempt = {
			.id = "a", .suspects = json_pack("[s]", "n3"), .nodes = names, .node_count = 2};
		type_of_n3 = cases[i].type;
		answer = 200;
		wlb_run_suspects_begin(&run, &attempt, NULL);
		run.suspects->begin_ms = wlb_clock_ms();
		wlb_run_suspects_check(&run, &attempt);
		assert_string_equal(words, cases[i].is_compared ? CHECK "--device cuda --gpus 8 "
		                                                : CHECK "--device cuda --gpus 8 --only "
		                                                        "products,memory,disk ");
		end(&run, &attempt);
	}
}

/* All deadlines of a check are over when a suspended job goes on. */
static void a_failure_during_a_suspension_is_none(void **state)
{
	struct wlb_run run = {.id = "12", .suspects = &checks};
	struct wlb_attempt attempt = {.id = "a", .suspects = json_pack("[s, s]", "n3", "n4")};
	(void)state;
	answer = 200;
	requests = 0;
	events[0] = '\0';
	wlb_run_suspects_begin(&run, &attempt, NULL);
	run.suspects->begin_ms = wlb_clock_ms();
	wlb_run_suspects_check(&run, &attempt);
	run.suspects->seen_ms -= 4000;
	wlb_run_suspects_check(&run, &attempt);
	assert_int_equal(requests, 0);
	assert_string_equal(events,
	                    "node_not_checked n3 could not be checked: the job was suspended during its check\n");
	wlb_run_suspects_check(&run, &attempt); /* the next node's begins */
	wlb_run_suspects_check(&run, &attempt);
	assert_int_equal(requests, 1);
	assert_non_null(strstr(sent, "\"node\":\"n4\""));
	end(&run, &attempt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_taken_is_sent_again),
		cmocka_unit_test(what_is_taken_or_refused_is_sent_once),
		cmocka_unit_test(lines_of_the_site_are_skipped),
		cmocka_unit_test(the_last_try_is_before_the_next_attempt),
		cmocka_unit_test(the_speed_of_other_gpus_is_not_compared),
		cmocka_unit_test(a_failure_during_a_suspension_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
