/* For how long a node's slurmd, and its kernel, have not answered. Time and the probes are the test's. */
#include "coordinator/wlbd/nodes/node_probe.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/nodes/own_network.h"
#include "coordinator/wlbd/nodes/program_probe.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	USER = 1000,
	ASK_MS = 500,
	PROBE_MS = 1000,
	CYCLE_MS = 3700,
	STEP_MS = 4000,
	HOST_SILENT_MS = 60000,
	NETWORK_BACK_MS = 8000
};

static const char node_name[] = "n1";
static const char *asked_name; /* of which node is asked */
static int64_t now_ms, works_from_ms;
static int unlucky;
static bool takes_time; /* pauses and probes that fail */
static void (*probed)(void *context, enum wlbd_probe_outcome outcome, int64_t took_ms);
static void *probed_context;

int __wrap_event_add(struct event *event, const struct timeval *after);
int64_t __wrap_wlb_clock_ms(void);
struct wlbd_program_probe *__wrap_wlbd_program_probe_start(struct event_base *base, const struct sockaddr *address,
                                                           socklen_t length,
                                                           void (*done)(void *, enum wlbd_probe_outcome, int64_t),
                                                           void *context);
const struct wlbd_node *__wrap_wlbd_nodes_find(const struct wlbd_nodes *nodes, const char *name);
void __wrap_wlbd_nodes_resolve_again(struct wlbd *wlbd, const char *name);
void __wrap_wlbd_own_network_ask(struct wlbd_own_network *question, struct wlbd *wlbd, const char *silent,
                                 void (*done)(void *context, enum wlbd_own_network_state state), void *context);
int64_t __wrap_wlbd_attempts_last_report_ms(const struct wlbd_attempts *attempts, const char *node, uid_t uid);

/* A pause is over at once. */
int __wrap_event_add(struct event *event, const struct timeval *after)
{
	now_ms += takes_time ? after->tv_sec * 1000 + after->tv_usec / 1000 : 0;
	event_active(event, EV_TIMEOUT, 0);
	return 0;
}

int64_t __wrap_wlb_clock_ms(void)
{
	return now_ms;
}

struct wlbd_program_probe *__wrap_wlbd_program_probe_start(struct event_base *base, const struct sockaddr *address,
                                                           socklen_t length,
                                                           void (*done)(void *, enum wlbd_probe_outcome, int64_t),
                                                           void *context)
{
	(void)base;
	(void)address;
	(void)length;
	probed = done;
	probed_context = context;
	return (struct wlbd_program_probe *)&probed; /* only that it is not NULL matters */
}

const struct wlbd_node *__wrap_wlbd_nodes_find(const struct wlbd_nodes *nodes, const char *name)
{
	static const struct wlbd_node node = {.address_length = sizeof(struct sockaddr_in)};
	(void)nodes;
	(void)name;
	return &node;
}

void __wrap_wlbd_nodes_resolve_again(struct wlbd *wlbd, const char *name)
{
	(void)wlbd;
	(void)name;
}

int64_t __wrap_wlbd_attempts_last_report_ms(const struct wlbd_attempts *attempts, const char *node, uid_t uid)
{
	(void)attempts;
	(void)node;
	(void)uid;
	return 0;
}

/* The others answer from works_from_ms on, except to the next `unlucky` questions. */
void __wrap_wlbd_own_network_ask(struct wlbd_own_network *question, struct wlbd *wlbd, const char *silent,
                                 void (*done)(void *context, enum wlbd_own_network_state state), void *context)
{
	(void)question;
	(void)wlbd;
	assert_string_equal(silent, asked_name);
	now_ms += ASK_MS;
	bool works = now_ms >= works_from_ms && unlucky-- <= 0;
	done(context, works ? WLBD_OWN_NETWORK_WORKS : WLBD_OWN_NETWORK_SILENT);
}

struct answer {
	bool is_given, alive;
};

static void note(void *context, bool alive)
{
	*(struct answer *)context = (struct answer){true, alive};
}

/* One question about the node, whose probes end in the same way: `until` first, before the network of this host works,
 * then `outcome`. Returns the answer. */
static bool ask_after(struct wlbd *wlbd, enum wlbd_probe_outcome until, enum wlbd_probe_outcome outcome)
{
	struct answer answer = {0};
	wlbd_node_probe(wlbd->node_probes, asked_name, USER, note, &answer);
	while (!answer.is_given) {
		void *before = probed_context;
		probed_context = NULL;
		now_ms += takes_time ? PROBE_MS : 0;
		probed(before, now_ms < works_from_ms ? until : outcome, 0);
		if (!answer.is_given && probed_context == NULL)
			event_base_loop(wlbd->base, EVLOOP_ONCE);
	}
	return answer.alive;
}

static bool ask(struct wlbd *wlbd, enum wlbd_probe_outcome outcome)
{
	return ask_after(wlbd, outcome, outcome);
}

static void ask_for(struct wlbd *wlbd, enum wlbd_probe_outcome outcome, int64_t for_ms)
{
	for (int64_t end_ms = now_ms + for_ms; now_ms < end_ms; now_ms += STEP_MS)
		ask(wlbd, outcome);
	ask(wlbd, outcome);
}

static void begin(struct wlbd *wlbd)
{
	memset(wlbd, 0, sizeof(*wlbd));
	now_ms = 1000;
	works_from_ms = 0;
	unlucky = 0;
	takes_time = false;
	asked_name = node_name;
	wlbd->base = event_base_new();
	wlbd->config.node_down_after_ms = 2000;
	wlbd->node_probes = wlbd_node_probes_new(wlbd);
	assert_non_null(wlbd->node_probes);
}

static void end(struct wlbd *wlbd)
{
	wlbd_node_probes_free(wlbd->node_probes);
	event_base_free(wlbd->base);
}

static bool is_silent(const struct wlbd *wlbd)
{
	return wlbd_node_is_silent(wlbd->node_probes, node_name, USER);
}

static bool host_is_silent(const struct wlbd *wlbd)
{
	return wlbd_node_host_is_silent(wlbd->node_probes, node_name, USER);
}

static void a_host_is_silent_after_a_minute(void **state)
{
	struct wlbd wlbd;
	(void)state;
	begin(&wlbd);
	ask_for(&wlbd, WLBD_PROBE_FAILED, HOST_SILENT_MS - STEP_MS);
	assert_true(is_silent(&wlbd));
	assert_false(host_is_silent(&wlbd));
	now_ms += STEP_MS;
	ask(&wlbd, WLBD_PROBE_FAILED);
	assert_true(host_is_silent(&wlbd));
	end(&wlbd);
}

static void a_kernel_that_answers_is_that_of_a_host_that_lives(void **state)
{
	static const enum wlbd_probe_outcome answers[] = {WLBD_PROBE_REFUSED, WLBD_PROBE_ACCEPTED};
	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct wlbd wlbd;
		begin(&wlbd);
		ask_for(&wlbd, WLBD_PROBE_FAILED, HOST_SILENT_MS / 2);
		now_ms += STEP_MS;
		ask(&wlbd, answers[i]);
		now_ms += STEP_MS;
		ask_for(&wlbd, WLBD_PROBE_FAILED, HOST_SILENT_MS / 2);
		assert_true(is_silent(&wlbd));
		assert_false(host_is_silent(&wlbd));
		end(&wlbd);
	}
}

/* Nothing comes from any node: the node is not called dead, and no step that follows from it is taken. */
static void a_host_without_network_calls_no_node_dead(void **state)
{
	struct wlbd wlbd;
	(void)state;
	begin(&wlbd);
	works_from_ms = INT64_MAX;
	int64_t from_ms = now_ms;
	assert_true(ask(&wlbd, WLBD_PROBE_FAILED));
	assert_in_range(now_ms - from_ms, 30000, 40000);
	assert_true(ask(&wlbd, WLBD_PROBE_FAILED));
	assert_false(is_silent(&wlbd));
	assert_false(host_is_silent(&wlbd));
	works_from_ms = now_ms;
	now_ms += NETWORK_BACK_MS;
	ask_for(&wlbd, WLBD_PROBE_FAILED, STEP_MS);
	assert_false(ask(&wlbd, WLBD_PROBE_FAILED));
	assert_true(is_silent(&wlbd));
	end(&wlbd);
}

/* The first node that answers does not show that all others can. */
static void a_node_has_time_to_answer_when_the_network_is_back(void **state)
{
	struct wlbd wlbd;
	(void)state;
	for (int for_ms = 0; for_ms <= 20000; for_ms += 1000) {
		begin(&wlbd);
		takes_time = true;
		int64_t from_ms = now_ms;
		works_from_ms = now_ms + for_ms;
		assert_false(ask(&wlbd, WLBD_PROBE_FAILED));
		if (for_ms > 4000) /* else the first question may come later */
			assert_in_range(now_ms - from_ms, for_ms + NETWORK_BACK_MS - CYCLE_MS,
			                for_ms + NETWORK_BACK_MS + 2 * CYCLE_MS);
		end(&wlbd);
	}
}

/* Those that were asked may have died together with the node, while others answer: another question tells. */
static void a_question_to_lost_nodes_alone_is_asked_again(void **state)
{
	struct wlbd wlbd;
	(void)state;
	begin(&wlbd);
	takes_time = true;
	unlucky = 1;
	int64_t from_ms = now_ms;
	assert_false(ask(&wlbd, WLBD_PROBE_FAILED));
	assert_in_range(now_ms - from_ms, 2 * CYCLE_MS, NETWORK_BACK_MS + 2 * CYCLE_MS);
	end(&wlbd);
}

/* One question that brought nothing makes no other node wait; two do. */
static void a_question_in_vain_holds_up_its_node_alone(void **state)
{
	struct wlbd wlbd;
	(void)state;
	for (int questions = 1; questions <= 2; questions++) {
		begin(&wlbd);
		takes_time = true;
		works_from_ms = now_ms + questions * CYCLE_MS;
		assert_true(ask_after(&wlbd, WLBD_PROBE_FAILED, WLBD_PROBE_ANSWERED));
		asked_name = "n2";
		int64_t from_ms = now_ms;
		assert_false(ask(&wlbd, WLBD_PROBE_FAILED));
		assert_int_equal(now_ms - from_ms > CYCLE_MS + PROBE_MS, questions == 2);
		end(&wlbd);
	}
}

/* The network came back after the last probe of the node, and before the first of another one. */
static void a_node_is_probed_again_when_the_network_is_back(void **state)
{
	struct wlbd wlbd;
	(void)state;
	begin(&wlbd);
	works_from_ms = now_ms + ASK_MS;
	assert_true(ask_after(&wlbd, WLBD_PROBE_FAILED, WLBD_PROBE_ANSWERED));
	assert_false(is_silent(&wlbd));
	end(&wlbd);
}

/* A kernel that answers shows that the network works. */
static void no_other_node_is_asked_where_the_kernel_answers(void **state)
{
	struct wlbd wlbd;
	(void)state;
	begin(&wlbd);
	works_from_ms = INT64_MAX;
	assert_false(ask(&wlbd, WLBD_PROBE_REFUSED));
	assert_false(ask(&wlbd, WLBD_PROBE_ACCEPTED));
	end(&wlbd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_is_silent_after_a_minute),
		cmocka_unit_test(a_host_without_network_calls_no_node_dead),
		cmocka_unit_test(a_node_has_time_to_answer_when_the_network_is_back),
		cmocka_unit_test(a_question_to_lost_nodes_alone_is_asked_again),
		cmocka_unit_test(a_question_in_vain_holds_up_its_node_alone),
		cmocka_unit_test(a_node_is_probed_again_when_the_network_is_back),
		cmocka_unit_test(no_other_node_is_asked_where_the_kernel_answers),
		cmocka_unit_test(a_kernel_that_answers_is_that_of_a_host_that_lives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
