/* For how long a node's slurmd, and its kernel, have not answered. Time and the probes are the test's. */
#include "coordinator/wlbd/liveness/node_probe.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/liveness/attempts.h"
#include "coordinator/wlbd/liveness/probe.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/wlbd.h"

enum { USER = 1000, STEP_MS = 4000, HOST_SILENT_MS = 60000 };

static const char node_name[] = "n1";
static int64_t now_ms;
static void (*probed)(void *context, enum wlbd_probe_outcome outcome, int64_t took_ms);
static void *probed_context;

int __wrap_event_add(struct event *event, const struct timeval *after);
int64_t __wrap_wlb_clock_ms(void);
struct wlbd_probe *__wrap_wlbd_probe_start(struct event_base *base, const struct sockaddr *address, socklen_t length,
                                           void (*done)(void *, enum wlbd_probe_outcome, int64_t), void *context);
const struct wlbd_node *__wrap_wlbd_nodes_find(const struct wlbd_nodes *nodes, const char *name);
void __wrap_wlbd_nodes_resolve_again(struct wlbd *wlbd, const char *name);
int64_t __wrap_wlbd_attempts_last_report_ms(const struct wlbd_attempts *attempts, const char *node, uid_t uid);

/* The pause before the second probe is over at once. */
int __wrap_event_add(struct event *event, const struct timeval *after)
{
	(void)after;
	event_active(event, EV_TIMEOUT, 0);
	return 0;
}

int64_t __wrap_wlb_clock_ms(void)
{
	return now_ms;
}

struct wlbd_probe *__wrap_wlbd_probe_start(struct event_base *base, const struct sockaddr *address, socklen_t length,
                                           void (*done)(void *, enum wlbd_probe_outcome, int64_t), void *context)
{
	(void)base;
	(void)address;
	(void)length;
	probed = done;
	probed_context = context;
	return (struct wlbd_probe *)&probed; /* only that it is not NULL matters */
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

static void note(void *context, bool alive)
{
	(void)alive;
	*(bool *)context = true;
}

/* One question about the node: two probes, which end in the same way. */
static void ask(struct wlbd *wlbd, enum wlbd_probe_outcome outcome)
{
	bool is_answered = false;
	wlbd_node_probe(wlbd->node_probes, node_name, USER, note, &is_answered);
	while (!is_answered) {
		probed(probed_context, outcome, 0);
		if (!is_answered)
			event_base_loop(wlbd->base, EVLOOP_ONCE);
	}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_is_silent_after_a_minute),
		cmocka_unit_test(a_kernel_that_answers_is_that_of_a_host_that_lives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
