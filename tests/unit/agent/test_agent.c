/* The agent runs in a child; its slurmstepd and its ranks are the test and the test's other children. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/clock.h"
#include "coordinator/agent/agent.h"
#include "tests/unit/client/munged.h"
#include "tests/unit/client/server.h"

#define ATTEMPT "6e1b0f3c-3c1e-4c39-9ad5-0d6a3d0c1f11"

struct fixture {
	pthread_mutex_t lock;
	struct server *server;
	struct wlb_node_page *page;
	int page_fd;
	int socket; /* the plugin's end */
	pid_t agent;
	pid_t ranks[2]; /* 4 and 5 */
	json_t *last;   /* report */
	int reports;
	json_t *exits; /* of all reports that were acknowledged */
	int status;    /* what reports are answered with */
	bool order_end;
	bool stalled; /* no answer at all */
};

static bool answer(void *context, int fd, const struct request *request)
{
	struct fixture *s = context;
	pthread_mutex_lock(&s->lock);
	json_t *report = json_loads(request->body, 0, NULL);
	bool stalled = s->stalled;
	int status = s->status;
	s->reports++;
	if (status == 200)
		json_array_extend(s->exits, json_object_get(report, "exits"));
	json_decref(s->last);
	s->last = report;
	const char *body =
		s->order_end ? "{\"order\":\"end\",\"reason\":\"node n9 is lost\"}" : "{\"order\":\"continue\"}";
	pthread_mutex_unlock(&s->lock);
	if (stalled)
		wlb_clock_sleep_ms(1500);
	return server_reply(fd, request, status, body);
}

static pid_t start_rank(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static void tell(const struct fixture *s, const char *format, int rank, int value)
{
	char message[64];
	snprintf(message, sizeof(message), format, rank, value);
	assert_true(send(s->socket, message, strlen(message), MSG_NOSIGNAL) > 0);
}

static pid_t start_agent(struct fixture *s, int socket)
{
	struct wlb_client_config config = server_config(s->server);
	struct wlb_agent_options options = {.run_id = "12",
	                                    .attempt_id = ATTEMPT,
	                                    .node = "n3",
	                                    .nodes = 4,
	                                    .tasks = 2,
	                                    .control_fd = socket,
	                                    .stepd = getpid(),
	                                    .page = s->page};
	pid_t pid = fork();
	if (pid == 0) {
		close(s->socket);
		_exit(wlb_agent_run(&options, &config, NULL) == 0 ? 0 : 1);
	}
	return pid;
}

static int begin(void **state)
{
	struct fixture *s = calloc(1, sizeof(*s));
	int ends[2];
	pthread_mutex_init(&s->lock, NULL);
	s->status = 200;
	s->exits = json_array();
	s->page = wlb_node_page_create(ATTEMPT, &s->page_fd, NULL);
	for (int i = 0; i < 2; i++)
		s->ranks[i] = start_rank();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	s->socket = ends[0];
	s->server = server_start(answer, s);
	s->agent = start_agent(s, ends[1]);
	close(ends[1]);
	for (int i = 0; i < 2; i++)
		tell(s, "task %d %d", 4 + i, s->ranks[i]);
	*state = s;
	return 0;
}

static int end(void **state)
{
	struct fixture *s = *state;
	for (int i = 0; i < 2; i++) {
		kill(s->ranks[i], SIGKILL);
		waitpid(s->ranks[i], NULL, 0);
	}
	if (s->agent > 0) {
		kill(s->agent, SIGKILL);
		waitpid(s->agent, NULL, 0);
	}
	server_stop(s->server);
	if (s->socket >= 0)
		close(s->socket);
	wlb_node_page_close(s->page);
	close(s->page_fd);
	json_decref(s->exits);
	json_decref(s->last);
	free(s);
	return 0;
}

/* Whether the last report has such a member; `expected` is stolen. */
static bool last_has(struct fixture *s, const char *name, json_t *expected)
{
	pthread_mutex_lock(&s->lock);
	bool equal = json_equal(json_object_get(s->last, name), expected);
	pthread_mutex_unlock(&s->lock);
	json_decref(expected);
	return equal;
}

static int reports(struct fixture *s)
{
	pthread_mutex_lock(&s->lock);
	int count = s->reports;
	pthread_mutex_unlock(&s->lock);
	return count;
}

#define WAIT_FOR(condition, limit_ms)                                                                                  \
	do {                                                                                                           \
		int64_t until_ms = wlb_clock_ms() + (limit_ms);                                                        \
		while (!(condition) && wlb_clock_ms() < until_ms)                                                      \
			wlb_clock_sleep_ms(10);                                                                        \
		assert_true(condition);                                                                                \
	} while (0)

static bool agent_ended(struct fixture *s)
{
	int status;
	if (s->agent > 0 && waitpid(s->agent, &status, WNOHANG) == s->agent) {
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		s->agent = 0;
	}
	return s->agent == 0;
}

/* The code of the rank in an acknowledged report, -1 while there is none. */
static int told_code(struct fixture *s, int rank, size_t *times)
{
	int code = -1;
	size_t i;
	json_t *entry;
	pthread_mutex_lock(&s->lock);
	*times = 0;
	json_array_foreach(s->exits, i, entry)
	{
		if (json_integer_value(json_object_get(entry, "rank")) != rank)
			continue;
		code = (int)json_integer_value(json_object_get(entry, "code"));
		(*times)++;
	}
	pthread_mutex_unlock(&s->lock);
	return code;
}

static void reports_each_second(void **state)
{
	struct fixture *s = *state;
	WAIT_FOR(reports(s) > 0, 1000);
	assert_true(last_has(s, "attempt_id", json_string(ATTEMPT)));
	assert_true(last_has(s, "source", json_string("node")));
	assert_true(last_has(s, "node", json_string("n3")));
	assert_true(last_has(s, "rank", json_integer(4)));
	assert_true(last_has(s, "ranks", json_pack("[i, i]", 4, 5)));
	assert_true(last_has(s, "agent", json_true()));
	assert_true(last_has(s, "goodbye", json_false()));
	assert_true(last_has(s, "exits", json_array()));
	wlb_node_page_set_step(s->page, 77);
	WAIT_FOR(last_has(s, "step", json_integer(77)), 2000);
	int before = reports(s);
	wlb_clock_sleep_ms(3000);
	assert_in_range(reports(s) - before, 2, 4);
}

static void tells_how_ranks_ended(void **state)
{
	struct fixture *s = *state;
	size_t times;
	WAIT_FOR(reports(s) > 0, 1000);
	kill(s->ranks[1], SIGKILL); /* the plugin says nothing, and nobody reaps it */
	WAIT_FOR(told_code(s, 5, &times) == 137, 300);
	tell(s, "exit %d %d", 4, 0);
	WAIT_FOR(told_code(s, 4, &times) == 0, 300);
	WAIT_FOR(agent_ended(s), 1000);
	assert_true(last_has(s, "goodbye", json_true()));
	assert_int_equal(json_array_size(json_object_get(s->last, "lost_ranks")), 0);
	told_code(s, 5, &times);
	assert_int_equal(times, 1);
}

static void tells_again_what_was_not_taken(void **state)
{
	struct fixture *s = *state;
	size_t times;
	pthread_mutex_lock(&s->lock);
	s->status = 503;
	pthread_mutex_unlock(&s->lock);
	tell(s, "exit %d %d", 4, 1);
	wlb_clock_sleep_ms(1500);
	assert_true(json_array_size(json_object_get(s->last, "exits")) == 1);
	pthread_mutex_lock(&s->lock);
	s->status = 200;
	pthread_mutex_unlock(&s->lock);
	WAIT_FOR(told_code(s, 4, &times) == 1, 3000);
	tell(s, "end", 0, 0);
	WAIT_FOR(agent_ended(s), 1000);
}

static void does_not_wait_at_the_end(void **state)
{
	struct fixture *s = *state;
	WAIT_FOR(reports(s) > 0, 1000);
	pthread_mutex_lock(&s->lock);
	s->stalled = true;
	pthread_mutex_unlock(&s->lock);
	int before = reports(s);
	WAIT_FOR(reports(s) > before, 2000); /* a request is under way */
	tell(s, "end", 0, 0);
	close(s->socket);
	s->socket = -1;
	WAIT_FOR(agent_ended(s), 1000);
}

static void obeys_with_force(void **state)
{
	struct fixture *s = *state;
	const char *reason = "";
	WAIT_FOR(reports(s) > 0, 1000);
	pthread_mutex_lock(&s->lock);
	s->order_end = true;
	pthread_mutex_unlock(&s->lock);
	WAIT_FOR(wlb_node_page_must_end(s->page, &reason), 2000);
	assert_string_equal(reason, "node n9 is lost");
	wlb_clock_sleep_ms(4000);
	assert_int_equal(waitpid(s->ranks[0], NULL, WNOHANG), 0);
	size_t times;
	WAIT_FOR(told_code(s, 4, &times) == 137 && told_code(s, 5, &times) == 137, 3000);
	WAIT_FOR(agent_ended(s), 1000);
}

static void outlives_slurmstepd(void **state)
{
	struct fixture *s = *state;
	WAIT_FOR(reports(s) > 0, 1000);
	close(s->socket);
	s->socket = -1;
	WAIT_FOR(last_has(s, "stepd", json_string("gone")), 500);
	wlb_clock_sleep_ms(1500);
	assert_false(agent_ended(s)); /* its ranks run */
	for (int i = 0; i < 2; i++) {
		kill(s->ranks[i], SIGKILL);
		waitpid(s->ranks[i], NULL, 0);
	}
	WAIT_FOR(agent_ended(s), 2000);
	assert_true(last_has(s, "goodbye", json_true()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reports_each_second, begin, end),
		cmocka_unit_test_setup_teardown(tells_how_ranks_ended, begin, end),
		cmocka_unit_test_setup_teardown(tells_again_what_was_not_taken, begin, end),
		cmocka_unit_test_setup_teardown(does_not_wait_at_the_end, begin, end),
		cmocka_unit_test_setup_teardown(obeys_with_force, begin, end),
		cmocka_unit_test_setup_teardown(outlives_slurmstepd, begin, end),
	};
	return cmocka_run_group_tests(tests, munged_start, munged_stop);
}
