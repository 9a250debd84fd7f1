/* Nodes that have not reported after a restart of wlbd. Slurm's table, the probes and the time are the test's. */
#include "coordinator/wlbd/incident/unreported_nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/incident/node_question.h"
#include "coordinator/wlbd/incident/symptoms.h"
#include "coordinator/wlbd/nodes/node_probe.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/wlbd.h"

enum { NODES = 1100, DUE_MS = 15000, ROUND_MS = 5000 };

struct fixture {
	struct wlbd wlbd;
	struct wlbd_attempt *attempt;
	int64_t now_ms;
};

static int listed;                  /* nodes in Slurm's table */
static bool network_is_unavailable; /* so that every node counts as alive */
static const char *dead_node;       /* the others answer */
static int probes;

int __wrap_wlbd_nodes_count(const struct wlbd_nodes *nodes);
bool __wrap_wlbd_nodes_are_known(const struct wlbd_nodes *nodes);
const struct wlbd_node *__wrap_wlbd_nodes_find(const struct wlbd_nodes *nodes, const char *name);
struct wlbd_node_silence __wrap_wlbd_node_silence(const struct wlbd_node_probes *all, const char *name);
void __wrap_wlbd_node_probe(struct wlbd_node_probes *all, const char *name, uid_t uid,
                            void (*done)(void *context, bool alive), void *context);

int __wrap_wlbd_nodes_count(const struct wlbd_nodes *nodes)
{
	(void)nodes;
	return listed;
}

bool __wrap_wlbd_nodes_are_known(const struct wlbd_nodes *nodes)
{
	(void)nodes;
	return listed > 0;
}

const struct wlbd_node *__wrap_wlbd_nodes_find(const struct wlbd_nodes *nodes, const char *name)
{
	static struct wlbd_node node = {.address_length = 1};
	(void)nodes;
	(void)name;
	return listed > 0 ? &node : NULL;
}

static bool is_silent(const char *name)
{
	return network_is_unavailable || strcmp(name, dead_node) == 0;
}

struct wlbd_node_silence __wrap_wlbd_node_silence(const struct wlbd_node_probes *all, const char *name)
{
	(void)all;
	return (struct wlbd_node_silence){.probes = listed > 0 && is_silent(name) ? 2 : 0};
}

void __wrap_wlbd_node_probe(struct wlbd_node_probes *all, const char *name, uid_t uid,
                            void (*done)(void *context, bool alive), void *context)
{
	(void)all;
	(void)uid;
	probes++;
	done(context, listed == 0 || network_is_unavailable || !is_silent(name));
}

static void ignore(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	(void)context;
}

static int begin(void **state)
{
	const struct wlbd_budget_limits limits = {.user_bytes = 1 << 20, .all_bytes = 2 << 20};
	struct fixture *f = calloc(1, sizeof(*f));
	json_t *nodes = json_array();
	for (int i = 0; i < NODES; i++)
		json_array_append_new(nodes, json_sprintf("n%04d", i));
	json_t *attempt_json = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:o}", "attempt_id", "a", "run",
	                                 "12", "run_pk", 1, "attempt_pk", 1, "attempt", 1, "job_id", 12, "uid", 1000,
	                                 "confirmed", 1, "world_size", NODES, "nodes", nodes);
	f->wlbd.base = event_base_new();
	f->wlbd.attempt_budget = wlbd_budget_new(&limits);
	f->wlbd.attempts = wlbd_attempts_new(ignore);
	f->attempt = wlbd_attempts_put(&f->wlbd, attempt_json);
	json_decref(attempt_json);
	f->attempt->unreported.due_ms = DUE_MS;
	listed = NODES;
	network_is_unavailable = false;
	dead_node = "";
	probes = 0;
	*state = f;
	return 0;
}

static int end(void **state)
{
	struct fixture *f = *state;
	wlbd_node_questions_free(f->wlbd.attempts);
	wlbd_attempts_free(f->wlbd.attempts);
	wlbd_budget_free(f->wlbd.attempt_budget);
	event_base_free(f->wlbd.base);
	free(f);
	return 0;
}

/* Each second until then. */
static void run_until(struct fixture *f, int64_t until_ms)
{
	for (; f->now_ms <= until_ms; f->now_ms += 1000)
		wlbd_unreported_nodes_check(f->attempt, f->now_ms);
}

static void assert_found(const struct fixture *f, const char *node)
{
	const struct wlbd_incident *incident = &f->attempt->incident;
	assert_int_equal(incident->count, node != NULL);
	if (node != NULL)
		assert_string_equal(incident->symptoms[0].node, node);
}

static void nodes_have_time_to_report(void **state)
{
	struct fixture *f = *state;
	run_until(f, DUE_MS - 1);
	assert_int_equal(probes, 0);
	assert_int_not_equal(f->attempt->unreported.due_ms, 0);
	run_until(f, DUE_MS);
	assert_int_equal(f->attempt->unreported.due_ms, 0);
	assert_in_range(probes, 1, NODES - 1); /* not all at once */
}

/* Nor do the others leave too many symptoms. */
static void the_last_of_many_is_found(void **state)
{
	struct fixture *f = *state;
	static const char *const nodes[] = {"n0000", "n1099", "n0500"};
	for (int i = 0; i < 3; i++) {
		dead_node = nodes[i];
		f->attempt->unreported.due_ms = f->now_ms + 1;
		run_until(f, f->now_ms + 12000);
		assert_found(f, nodes[i]);
		wlbd_incident_clear(&f->attempt->incident);
	}
}

static void one_that_answers_is_not_asked_again(void **state)
{
	struct fixture *f = *state;
	run_until(f, DUE_MS + 10 * ROUND_MS);
	assert_int_equal(probes, NODES);
	assert_int_equal(f->attempt->unreported.nodes.count, 0);
}

/* slurmctld was started again, too. */
static void nodes_are_probed_once_slurm_has_listed_them(void **state)
{
	struct fixture *f = *state;
	listed = 0;
	dead_node = "n0007";
	run_until(f, DUE_MS + 10000);
	assert_found(f, NULL);
	listed = NODES;
	run_until(f, f->now_ms + 10000);
	assert_found(f, "n0007");
}

static void and_again_once_the_network_of_this_host_is_back(void **state)
{
	struct fixture *f = *state;
	network_is_unavailable = true;
	dead_node = "n0007";
	run_until(f, DUE_MS + 40000);
	assert_found(f, NULL);
	network_is_unavailable = false;
	run_until(f, f->now_ms + ROUND_MS + 10000);
	assert_found(f, "n0007");
}

/* Such as a standby, of which rank 0 records later that it has no rank. */
static void those_that_report_or_have_no_rank_are_not_missing(void **state)
{
	struct fixture *f = *state;
	network_is_unavailable = true;
	run_until(f, DUE_MS + ROUND_MS);
	json_t *two = json_pack("[s, s]", "n0001", "n0002");
	assert_int_equal(wlbd_attempt_nodes_set(&f->attempt->nodes, two, 2), 0);
	json_decref(two);
	assert_non_null(wlbd_attempt_reporter(f->attempt, "n0001", 0));
	run_until(f, f->now_ms + 3 * ROUND_MS);
	assert_int_equal(f->attempt->unreported.nodes.count, 1);
	assert_string_equal(f->attempt->unreported.nodes.list[0], "n0002");
	assert_non_null(wlbd_attempt_reporter(f->attempt, "n0002", WLBD_LAUNCHER));
	run_until(f, f->now_ms + 2 * ROUND_MS);
	assert_int_equal(f->attempt->unreported.nodes.count, 0);
}

/* It would count as alive before. */
static void a_node_is_probed_once_its_address_is_known(void **state)
{
	struct fixture *f = *state;
	struct timeval limit = {0, 250 * 1000};
	listed = 0;
	dead_node = "n0007";
	assert_int_equal(wlbd_symptom_node_silent(f->attempt, "n0007"), 0);
	const struct wlbd_symptom *silent = &f->attempt->incident.symptoms[0];
	assert_int_equal(silent->node_state, WLBD_NODE_ASKED);
	assert_int_equal(probes, 0);
	listed = NODES;
	event_base_loopexit(f->wlbd.base, &limit);
	event_base_dispatch(f->wlbd.base);
	assert_int_equal(probes, 1);
	assert_int_equal(silent->node_state, WLBD_NODE_LOST);
}

/* Whichever code a rank ended with, a node that has not answered yet may be why. */
static void a_rank_that_ends_before_all_nodes_have_answered_may_follow_from_them(void **state)
{
	struct fixture *f = *state;
	f->attempt->requeue.asked_ms = INT64_MAX; /* Slurm is not asked for the job */
	network_is_unavailable = true;
	run_until(f, DUE_MS + ROUND_MS);
	assert_int_equal(f->attempt->unreported.due_ms, 0);
	struct wlbd_reporter *reporter = wlbd_attempt_reporter(f->attempt, "n0001", 0);
	for (int have_answered = 0; have_answered < 2; have_answered++) {
		wlbd_symptom_rank_exited(reporter, 0, 1);
		assert_int_equal(f->attempt->incident.count > 1, !have_answered);
		wlbd_incident_clear(&f->attempt->incident);
		network_is_unavailable = false;
		run_until(f, f->now_ms + ROUND_MS + 10000);
		assert_int_equal(f->attempt->unreported.nodes.count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nodes_have_time_to_report, begin, end),
		cmocka_unit_test_setup_teardown(the_last_of_many_is_found, begin, end),
		cmocka_unit_test_setup_teardown(one_that_answers_is_not_asked_again, begin, end),
		cmocka_unit_test_setup_teardown(nodes_are_probed_once_slurm_has_listed_them, begin, end),
		cmocka_unit_test_setup_teardown(and_again_once_the_network_of_this_host_is_back, begin, end),
		cmocka_unit_test_setup_teardown(a_node_is_probed_once_its_address_is_known, begin, end),
		cmocka_unit_test_setup_teardown(a_rank_that_ends_before_all_nodes_have_answered_may_follow_from_them,
	                                        begin, end),
		cmocka_unit_test_setup_teardown(those_that_report_or_have_no_rank_are_not_missing, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
