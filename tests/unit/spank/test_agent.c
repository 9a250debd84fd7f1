/* The plugin's side of wlb-agent(8), with the program itself: the test is slurmstepd, and its children are the tasks.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/clock.h"
#include "spank/agent.h"
#include "tests/unit/client/munged.h"
#include "tests/unit/client/server.h"
#include "tests/unit/spank/fake_spank.h"

enum { TASKS = 2, NODES = 4000 };

struct fixture {
	pthread_mutex_t lock;
	json_t *exits; /* of all reports */
	bool goodbye;
	struct server *server;
	struct wlb_spank_agent agent;
	pid_t pid; /* of the agent */
	pid_t tasks[TASKS];
};

static bool answer(void *context, int fd, const struct request *request)
{
	struct fixture *s = context;
	json_t *report = json_loads(request->body, 0, NULL);
	pthread_mutex_lock(&s->lock);
	json_array_extend(s->exits, json_object_get(report, "exits"));
	s->goodbye = s->goodbye || json_is_true(json_object_get(report, "goodbye"));
	pthread_mutex_unlock(&s->lock);
	json_decref(report);
	return server_reply(fd, request, 200, "{\"order\":\"continue\"}");
}

static int begin(void **state)
{
	struct fixture *s = calloc(1, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	s->exits = json_array();
	s->agent.fd = -1;
	/* The agent's first process leaves it to this one, which can see then that it has ended. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < TASKS; i++) {
		s->tasks[i] = fork();
		if (s->tasks[i] == 0) {
			pause();
			_exit(0);
		}
	}
	*state = s;
	return 0;
}

static int end(void **state)
{
	struct fixture *s = *state;
	for (int i = 0; i < TASKS; i++)
		if (s->tasks[i] > 0) {
			kill(s->tasks[i], SIGKILL);
			waitpid(s->tasks[i], NULL, 0);
		}
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	if (s->agent.fd >= 0)
		close(s->agent.fd);
	if (s->server != NULL)
		server_stop(s->server);
	json_decref(s->exits);
	fake_spank_reset();
	free(s);
	return 0;
}

/* Starts the agent of a coordinator at this port of 127.0.0.1, and announces the tasks: ranks 4 and 5. */
static void start_program(struct fixture *s, int port, const char *program)
{
	static const char *const names[] = {"WLB_COORDINATOR", "WLB_MUNGE_SOCKET", "WLB_COORDINATOR_USER", NULL};
	char page[64], coordinator[32], user[16];
	struct wlb_error error = {""};
	struct wlb_spank_args args = {.timeout_ms = 200, .agent_timeout_ms = 5000};
	struct wlb_spank_step step = {.run_id = "12",
	                              .attempt_id = "6e1b0f3c-3c1e-4c39-9ad5-0d6a3d0c1f11",
	                              .node = "n3",
	                              .nodes = NODES,
	                              .tasks = TASKS,
	                              .names = names};
	snprintf(args.agent, sizeof(args.agent), "%s", program);
	snprintf(coordinator, sizeof(coordinator), "127.0.0.1:%d", port);
	snprintf(user, sizeof(user), "%u", (unsigned)getuid());
	spank_setenv(NULL, "WLB_COORDINATOR", coordinator, 1);
	spank_setenv(NULL, "WLB_MUNGE_SOCKET", munged_socket(), 1);
	spank_setenv(NULL, "WLB_COORDINATOR_USER", user, 1);
	if (wlb_spank_agent_start(&s->agent, NULL, &args, &step, page, sizeof(page), &error) != 0)
		fail_msg("%s", error.message);
	assert_int_equal(sscanf(page, "/proc/%d/", &s->pid), 1);
	for (int i = 0; i < TASKS; i++)
		wlb_spank_agent_task(&s->agent, 4 + i, s->tasks[i]);
}

static void start(struct fixture *s, int port)
{
	start_program(s, port, WLB_TEST_AGENT);
}

/* As slurmstepd does once a task has ended; returns in how many milliseconds the plugin was done. */
static int64_t end_task(struct fixture *s, int task)
{
	int status;
	kill(s->tasks[task], SIGKILL);
	assert_int_equal(waitpid(s->tasks[task], &status, 0), s->tasks[task]);
	s->tasks[task] = 0;
	int64_t began_ms = wlb_clock_ms();
	wlb_spank_agent_exit(&s->agent, 4 + task, status);
	return wlb_clock_ms() - began_ms;
}

static bool agent_ended(struct fixture *s)
{
	if (s->pid > 0 && waitpid(s->pid, NULL, WNOHANG) == s->pid)
		s->pid = 0;
	return s->pid == 0;
}

/* Whatever the coordinator does, no agent is left for Slurm to wait for. */
static void check_ends_with_the_last_task(struct fixture *s, int port)
{
	start(s, port);
	assert_in_range(end_task(s, 1), 0, 200);
	assert_false(agent_ended(s));
	assert_in_range(end_task(s, 0), 0, 1500);
	assert_true(agent_ended(s));
	assert_int_equal(s->agent.fd, -1);
}

/* Returns a socket with a port of its own: nobody listens there, and with `backlog` the kernel accepts connections that
 * nobody answers. */
static int open_port(int backlog, int *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	if (backlog > 0)
		assert_int_equal(listen(fd, backlog), 0);
	*port = ntohs(address.sin_port);
	return fd;
}

static void ends_without_a_coordinator(void **state)
{
	int port, fd = open_port(0, &port);
	check_ends_with_the_last_task(*state, port);
	close(fd);
}

static void ends_beside_a_silent_coordinator(void **state)
{
	int port, fd = open_port(64, &port);
	check_ends_with_the_last_task(*state, port);
	close(fd);
}

/* Slurm 22.05 to 24.11 kills it with cgroup/v2 as soon as the callback of the last task has returned. */
static void has_reported_all_when_slurm_kills_it(void **state)
{
	struct fixture *s = *state;
	s->server = server_start(answer, s);
	start(s, server_port(s->server));
	end_task(s, 0);
	end_task(s, 1);
	kill(s->pid, SIGKILL);
	pthread_mutex_lock(&s->lock);
	assert_int_equal(json_array_size(s->exits), TASKS);
	assert_true(s->goodbye);
	pthread_mutex_unlock(&s->lock);
}

static void ends_without_ranks(void **state)
{
	struct fixture *s = *state;
	start(s, 1);
	assert_false(agent_ended(s));
	wlb_spank_agent_end(&s->agent);
	assert_true(agent_ended(s));
	wlb_spank_agent_end(&s->agent);
}

/* As on a node that reads the program from a busy file system, or that looks a name up in a slow directory. */
static void may_start_slowly(void **state)
{
	struct fixture *s = *state;
	char path[] = "/tmp/wlb-test-agent-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	dprintf(fd, "#!/bin/sh\nsleep 0.5\nexec %s \"$@\"\n", WLB_TEST_AGENT);
	fchmod(fd, 0700);
	close(fd);
	start_program(s, 1, path);
	unlink(path);
	assert_false(agent_ended(s));
}

static void write_score(int score)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "w");
	assert_true(file != NULL && fprintf(file, "%d", score) > 0 && fclose(file) == 0);
}

/* As any process of a user. slurmstepd has -1000, which not every root may set. */
static void may_be_ended_where_memory_is_short(void **state)
{
	struct fixture *s = *state;
	char path[64];
	int score = -1;
	if (geteuid() != 0)
		skip();
	write_score(500);
	start(s, 1);
	write_score(0);
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)s->pid);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &score), 1);
	fclose(file);
	assert_int_equal(score, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ends_without_a_coordinator, begin, end),
		cmocka_unit_test_setup_teardown(ends_beside_a_silent_coordinator, begin, end),
		cmocka_unit_test_setup_teardown(has_reported_all_when_slurm_kills_it, begin, end),
		cmocka_unit_test_setup_teardown(ends_without_ranks, begin, end),
		cmocka_unit_test_setup_teardown(may_start_slowly, begin, end),
		cmocka_unit_test_setup_teardown(may_be_ended_where_memory_is_short, begin, end),
	};
	return cmocka_run_group_tests(tests, munged_start, munged_stop);
}
