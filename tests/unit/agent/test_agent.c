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
#include "common/process_variable.h"
#include "common/seconds.h"
#include "coordinator/agent/agent.h"
#include "coordinator/agent/process.h"
#include "tests/unit/client/munged.h"
#include "tests/unit/client/server.h"

enum { START_MS = 20000 }; /* until an agent has reported, also beside other tests */
#define ATTEMPT "6e1b0f3c-3c1e-4c39-9ad5-0d6a3d0c1f11"

struct fixture {
	pthread_mutex_t lock;
	struct server *server;
	struct wlb_node_page *page;
	int page_fd;
	int socket; /* the plugin's end */
	pid_t agent;
	pid_t ranks[2];    /* 4 and 5 */
	bool is_childless; /* rank 5's process stands for slurmstepd */
	json_t *last;      /* report */
	int reports;
	json_t *exits; /* of all reports that were acknowledged */
	const char *stacks_program;
	int status; /* what reports are answered with */
	bool order_end;
	bool stalled;   /* no answer at all */
	int want;       /* the id of stacks that are asked for; 0: none are */
	json_t *stacks; /* the newest that were sent */
	int sent;       /* how often */
};

/* Unlocks. */
static bool answer_stacks(struct fixture *s, int fd, const struct request *request)
{
	json_decref(s->stacks);
	s->stacks = json_loads(request->body, 0, NULL);
	s->sent++;
	pthread_mutex_unlock(&s->lock);
	return server_reply(fd, request, 200, "{\"ranks\":2}");
}

static bool answer(void *context, int fd, const struct request *request)
{
	struct fixture *s = context;
	char wanted[96];
	pthread_mutex_lock(&s->lock);
	if (strcmp(request->path, "/v1/runs/12/stacks") == 0)
		return answer_stacks(s, fd, request);
	json_t *report = json_loads(request->body, 0, NULL);
	bool stalled = s->stalled;
	int status = s->status;
	s->reports++;
	if (status == 200)
		json_array_extend(s->exits, json_object_get(report, "exits"));
	json_decref(s->last);
	s->last = report;
	snprintf(wanted, sizeof(wanted), "{\"order\":\"continue\",\"want\":\"stacks\",\"stacks_id\":%d}", s->want);
	const char *body = s->order_end  ? "{\"order\":\"end\",\"reason\":\"node n9 is lost\"}"
	                   : s->want > 0 ? wanted
	                                 : "{\"order\":\"continue\"}";
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
	                                    .stepd = s->is_childless ? s->ranks[1] : getpid(),
	                                    .page = s->page,
	                                    .stacks_program = s->stacks_program};
	pid_t pid = fork();
	if (pid == 0) {
		close(s->socket);
		_exit(wlb_agent_run(&options, &config, NULL) == 0 ? 0 : 1);
	}
	return pid;
}

/* Before the plugin announces the ranks. */
static int begin_without_ranks(void **state, const char *stacks_program, bool is_childless)
{
	struct fixture *s = calloc(1, sizeof(*s));
	s->is_childless = is_childless;
	int ends[2];
	pthread_mutex_init(&s->lock, NULL);
	s->status = 200;
	s->stacks_program = stacks_program;
	s->exits = json_array();
	s->page = wlb_node_page_create(ATTEMPT, 2, &s->page_fd, NULL);
	for (int i = 0; i < 2; i++)
		s->ranks[i] = start_rank();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	s->socket = ends[0];
	s->server = server_start(answer, s);
	s->agent = start_agent(s, ends[1]);
	close(ends[1]);
	*state = s;
	return 0;
}

static int begin_with(void **state, const char *stacks_program)
{
	begin_without_ranks(state, stacks_program, false);
	const struct fixture *s = *state;
	for (int i = 0; i < 2; i++)
		tell(s, "task %d %d", 4 + i, s->ranks[i]);
	return 0;
}

static int begin_unannounced(void **state)
{
	return begin_without_ranks(state, NULL, false);
}

static int begin_unannounced_and_childless(void **state)
{
	return begin_without_ranks(state, NULL, true);
}

static int begin(void **state)
{
	return begin_with(state, NULL);
}

static int begin_with_stacks(void **state)
{
	return begin_with(state, WLB_TEST_STACKS_PROGRAM);
}

/* It takes the processes for seconds, and prints nothing. */
static int begin_with_sleep(void **state)
{
	return begin_with(state, "/bin/sleep");
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
	json_decref(s->stacks);
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
	WAIT_FOR(reports(s) > 0, START_MS);
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

/* The newest report's activity of the rank, a new reference; NULL where there is none. */
static json_t *activity_of(struct fixture *s, int rank)
{
	json_t *found = NULL, *each;
	size_t i;
	pthread_mutex_lock(&s->lock);
	json_array_foreach(json_object_get(s->last, "activities"), i,
	                   each) if (json_integer_value(json_object_get(each, "rank")) == rank) found =
		json_incref(each);
	pthread_mutex_unlock(&s->lock);
	return found;
}

/* `expected` is stolen; NULL: the activity has no such member. */
static int activity_has(struct fixture *s, int rank, const char *key, json_t *expected)
{
	json_t *activity = activity_of(s, rank);
	const json_t *value = json_object_get(activity, key);
	int has = expected != NULL ? json_equal(value, expected) : activity != NULL && value == NULL;
	json_decref(activity);
	json_decref(expected);
	return has;
}

static void tells_what_ranks_do(void **state)
{
	struct fixture *s = *state;
	WAIT_FOR(reports(s) > 0, START_MS);
	assert_null(activity_of(s, 4)); /* a trainer that writes no area */
	struct wlb_rank_trace *trace = wlb_node_page_take_area(s->page, 5);
	struct wlb_trace_event call = {.kind = WLB_COMM_RECV, .seq = 41, .bytes = 512};
	wlb_rank_trace_set_activity(trace, WLB_ACTIVITY_COMPUTING, wlb_now_s() - 7.0);
	wlb_rank_trace_set_step(trace, 9, 0.25);
	wlb_rank_trace_add_group(trace, "tp", 2);
	call.group = wlb_rank_trace_add_group(trace, "pp 0>1\n", 2);
	call.entered_s = call.blocked_s = wlb_now_s() - 3.0;
	wlb_rank_trace_enter(trace, &call);
	WAIT_FOR(activity_has(s, 5, "step", json_integer(9)), 2000);
	assert_true(activity_has(s, 5, "work", json_real(0.25)));
	assert_true(activity_has(s, 5, "activity", json_string("computing")));
	assert_true(activity_has(s, 5, "process", json_string("running")));
	assert_true(
		activity_has(s, 5, "groups", json_pack("[[s,i,i,i],[s,i,i,i]]", "tp", 2, 0, 0, "pp 0>1?", 2, 41, 0)));
	json_t *activity = activity_of(s, 5), *blocked = json_object_get(activity, "call");
	assert_string_equal(json_string_value(json_object_get(blocked, "kind")), "recv");
	assert_int_equal(json_integer_value(json_object_get(blocked, "group")), 1);
	assert_int_equal(json_integer_value(json_object_get(blocked, "seq")), 41);
	assert_int_equal(json_integer_value(json_object_get(blocked, "bytes")), 512);
	double for_s = json_real_value(json_object_get(blocked, "for_s"));
	assert_true(for_s >= 3.0 && for_s < 20.0);
	for_s = json_real_value(json_object_get(activity, "for_s"));
	assert_true(for_s >= 7.0 && for_s < 24.0);
	json_decref(activity);
	assert_null(activity_of(s, 4));

	kill(s->ranks[1], SIGSTOP);
	WAIT_FOR(activity_has(s, 5, "process", json_string("stopped")), 2000);
	kill(s->ranks[1], SIGCONT);
	call.left_s = wlb_now_s();
	wlb_rank_trace_leave(trace, &call);
	WAIT_FOR(activity_has(s, 5, "process", json_string("running")) && activity_has(s, 5, "call", NULL), 2000);
	kill(s->ranks[1], SIGKILL);
	WAIT_FOR(activity_has(s, 5, "process", json_string("gone")), 2000);
}

/* Of 40 communicators those are reported that come first, and the one of the call. */
static void tells_a_bounded_number_of_communicators(void **state)
{
	struct fixture *s = *state;
	struct wlb_rank_trace *trace = wlb_node_page_take_area(s->page, 4);
	struct wlb_trace_event call = {.seq = 6};
	for (int i = 0; i < 40; i++) {
		char name[16];
		snprintf(name, sizeof(name), "g%d", i);
		wlb_rank_trace_add_group(trace, name, 2);
	}
	for (int group = 3; group < 40; group += 30) {
		call.group = group;
		wlb_rank_trace_enter(trace, &call);
		char name[16];
		snprintf(name, sizeof(name), "g%d", group);
		int place = group < 16 ? group : 15;
		WAIT_FOR(activity_has(s, 4, "rank", json_integer(4)), 2000);
		int has = 0;
		for (int tries = 0; tries < 30 && !has; tries++) {
			json_t *activity = activity_of(s, 4), *groups = json_object_get(activity, "groups");
			json_t *of_call = json_object_get(json_object_get(activity, "call"), "group");
			const char *found = json_string_value(json_array_get(json_array_get(groups, (size_t)place), 0));
			has = json_array_size(groups) == 16 && json_integer_value(of_call) == place && found != NULL &&
			      strcmp(found, name) == 0;
			json_decref(activity);
			wlb_clock_sleep_ms(100);
		}
		assert_true(has);
	}
}

static void tells_how_ranks_ended(void **state)
{
	struct fixture *s = *state;
	size_t times;
	WAIT_FOR(reports(s) > 0, START_MS);
	kill(s->ranks[1], SIGKILL); /* the plugin says nothing, and nobody reaps it */
	WAIT_FOR(told_code(s, 5, &times) == 137, 300);
	tell(s, "exit %d %d", 4, 0);
	WAIT_FOR(told_code(s, 4, &times) == 0, 300);
	wlb_clock_sleep_ms(300);
	assert_false(agent_ended(s)); /* epilogs of the tasks may run, whose environment is that of the ranks */
	tell(s, "end", 0, 0);
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
	WAIT_FOR(reports(s) > 0, START_MS);
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
	WAIT_FOR(reports(s) > 0, START_MS);
	pthread_mutex_lock(&s->lock);
	s->order_end = true;
	pthread_mutex_unlock(&s->lock);
	WAIT_FOR(wlb_node_page_must_end(s->page, &reason), 2000);
	assert_string_equal(reason, "node n9 is lost");
	wlb_clock_sleep_ms(4000);
	assert_int_equal(waitpid(s->ranks[0], NULL, WNOHANG), 0);
	size_t times;
	WAIT_FOR(told_code(s, 4, &times) == 137 && told_code(s, 5, &times) == 137, 3000);
	tell(s, "end", 0, 0);
	WAIT_FOR(agent_ended(s), 1000);
}

static void outlives_slurmstepd(void **state)
{
	struct fixture *s = *state;
	WAIT_FOR(reports(s) > 0, START_MS);
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

/* The coordinator waits for srun, which slurmstepd has told nothing. */
static void tells_of_a_slurmstepd_that_dies_after_the_goodbye(void **state)
{
	struct fixture *s = *state;
	WAIT_FOR(reports(s) > 0, START_MS);
	tell(s, "exit %d %d", 4, 0);
	tell(s, "exit %d %d", 5, 0);
	WAIT_FOR(last_has(s, "goodbye", json_true()), 2000);
	wlb_clock_sleep_ms(300); /* it was accepted */
	assert_false(last_has(s, "stepd", json_string("gone")));
	close(s->socket);
	s->socket = -1;
	WAIT_FOR(agent_ended(s), 5000);
	assert_true(last_has(s, "stepd", json_string("gone")));
}

/* Runs bash with these commands, in that environment, and waits until it has it. */
static pid_t start_bash(const char *commands, char *attempt, char *node, char *job)
{
	char *words[] = {"/bin/bash", "-c", (char *)commands, NULL};
	char *variables[] = {attempt, node, job, NULL}, value[64] = "";
	pid_t pid = fork();
	if (pid == 0) {
		execve(words[0], words, variables);
		_exit(127);
	}
	assert_true(pid > 0);
	WAIT_FOR(wlb_process_variable(pid, "SLURMD_NODENAME", value, sizeof(value)) == 0, 2000);
	return pid;
}

/* A process of the attempt on the node, as the kernel shows it to the agent. */
static pid_t start_marked(void)
{
	return start_bash("exec sleep 60", "WLB_ATTEMPT_ID=" ATTEMPT, "SLURMD_NODENAME=n3", "SLURM_JOB_ID=12");
}

/* Returns the signal that has ended it; 0: it ran on until now. */
static int end_process(pid_t pid)
{
	int status = 0;
	if (waitpid(pid, &status, WNOHANG) == pid)
		return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return 0;
}

/* Whether the child has ended; it is still to be waited for. */
static bool is_over(pid_t child)
{
	siginfo_t info = {0};
	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

static void ends_what_ranks_have_left(void **state)
{
	struct fixture *s = *state;
	char text[64] = "";
	const pid_t left = start_marked();
	const pid_t stubborn = start_bash("trap '' TERM; while :; do sleep 0.1; done", "WLB_ATTEMPT_ID=" ATTEMPT,
	                                  "SLURMD_NODENAME=n3", "SLURM_JOB_ID=12");
	const pid_t others[] = {
		start_bash("exec sleep 60", "WLB_ATTEMPT_ID=00000000-0000-4000-8000-000000000000", "SLURMD_NODENAME=n3",
	                   "SLURM_JOB_ID=12"),
		start_bash("exec sleep 60", "WLB_ATTEMPT_ID=" ATTEMPT "0", "SLURMD_NODENAME=n3", "SLURM_JOB_ID=12"),
		start_bash("exec sleep 60", "WLB_ATTEMPT_ID=" ATTEMPT, "SLURMD_NODENAME=n4", "SLURM_JOB_ID=12"),
		start_bash("exec sleep 60", "LAST_WLB_ATTEMPT_ID=" ATTEMPT, "SLURMD_NODENAME=n3", "SLURM_JOB_ID=12"),
		start_bash("exec sleep 60", "WLB_ATTEMPT_ID=" ATTEMPT, "SLURMD_NODENAME=n3", "SLURM_JOB_ID=13"),
	};
	WAIT_FOR(reports(s) > 0, START_MS);
	wlb_clock_sleep_ms(200); /* bash has set its trap */
	tell(s, "end", 0, 0);
	WAIT_FOR(is_over(left), 10000);
	assert_int_equal(end_process(left), SIGTERM);
	assert_int_equal(waitpid(stubborn, NULL, WNOHANG), 0);
	WAIT_FOR(agent_ended(s), 10000);
	assert_int_equal(end_process(stubborn), SIGKILL);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(end_process(others[i]), 0);
	assert_true(recv(s->socket, text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
	int count = 0;
	assert_int_equal(sscanf(text, "ended %d", &count), 1);
	assert_in_range(count, 2, 3); /* with the sleep of the one that ignores SIGTERM */
}

/* The plugin waits for the agent for a fraction of a second, and the step runs on without it. */
static void one_that_was_given_up_harms_no_rank(void **state)
{
	struct fixture *s = *state;
	pid_t rank = start_marked();
	close(s->socket);
	s->socket = -1;
	WAIT_FOR(agent_ended(s), 2000);
	assert_int_equal(waitpid(rank, NULL, WNOHANG), 0);
	assert_int_equal(reports(s), 0);
	kill(rank, SIGKILL);
	assert_int_equal(waitpid(rank, NULL, 0), rank);
}

/* slurmstepd has failed to start a rank, and waits with cgroup/v2 until no process of the step is left. It has no child
 * then; before, the program of another plugin may be one. */
static void one_whose_ranks_never_start_ends(void **state)
{
	struct fixture *s = *state;
	assert_true(wlb_process_has_other_child(getpid()));
	assert_false(wlb_process_has_other_child(s->ranks[1]));
	tell(s, "task %d %d", 4, s->ranks[0]);
	wlb_clock_sleep_ms(21000);
	assert_false(agent_ended(s)); /* a rank runs */
	kill(s->ranks[0], SIGKILL);
	WAIT_FOR(agent_ended(s), 21000);
	assert_int_equal(reports(s), 0);
}

/* Another plugin imports an image meanwhile. */
static void one_whose_ranks_start_late_stays(void **state)
{
	struct fixture *s = *state;
	wlb_clock_sleep_ms(21000);
	assert_false(agent_ended(s));
	for (int i = 0; i < 2; i++)
		tell(s, "task %d %d", 4 + i, s->ranks[i]);
	WAIT_FOR(reports(s) > 0, 3000);
}

/* slurmstepd has died while it announced them. */
static void one_that_knows_some_ranks_ends_them_without_slurmstepd(void **state)
{
	struct fixture *s = *state;
	int status;
	pid_t rank = start_marked();
	tell(s, "task %d %d", 4, rank);
	wlb_clock_sleep_ms(200);
	close(s->socket);
	s->socket = -1;
	WAIT_FOR(agent_ended(s), 5000);
	assert_int_equal(waitpid(rank, &status, 0), rank);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void want(struct fixture *s, int stacks_id)
{
	pthread_mutex_lock(&s->lock);
	s->want = stacks_id;
	pthread_mutex_unlock(&s->lock);
}

static int sent(struct fixture *s)
{
	pthread_mutex_lock(&s->lock);
	int count = s->sent;
	pthread_mutex_unlock(&s->lock);
	return count;
}

/* The entry of rank 4 or 5 in the stacks that were sent. */
static const json_t *sent_rank(const struct fixture *s, int rank)
{
	const json_t *entry = json_array_get(json_object_get(s->stacks, "ranks"), (size_t)rank - 4);
	assert_int_equal(json_integer_value(json_object_get(entry, "rank")), rank);
	assert_int_equal(json_integer_value(json_object_get(entry, "pid")), s->ranks[rank - 4]);
	return entry;
}

static void gathers_stacks_once_for_each_request(void **state)
{
	struct fixture *s = *state;
	WAIT_FOR(reports(s) > 0, START_MS);
	wlb_clock_sleep_ms(1500);
	assert_int_equal(sent(s), 0);
	want(s, 17);
	WAIT_FOR(sent(s) == 1, 5000);
	assert_int_equal(json_integer_value(json_object_get(s->stacks, "stacks_id")), 17);
	assert_string_equal(json_string_value(json_object_get(s->stacks, "node")), "n3");
	assert_string_equal(json_string_value(json_object_get(s->stacks, "attempt_id")), ATTEMPT);
	for (int rank = 4; rank < 6; rank++) {
		const json_t *thread = json_array_get(json_object_get(sent_rank(s, rank), "threads"), 0);
		const char *frame = json_string_value(json_array_get(json_object_get(thread, "frames"), 0));
		assert_non_null(frame);
		assert_non_null(strstr(frame, "pause+0x"));
	}
	wlb_clock_sleep_ms(2500); /* the same number again, in two replies */
	assert_int_equal(sent(s), 1);
	want(s, 18);
	WAIT_FOR(sent(s) == 2, 5000);
}

static void reports_while_stacks_do_not_come(void **state)
{
	struct fixture *s = *state;
	WAIT_FOR(reports(s) > 0, START_MS);
	want(s, 17);
	int before = reports(s);
	WAIT_FOR(sent(s) == 1, 8000);
	assert_in_range(reports(s) - before, 3, 7);
	const char *note = json_string_value(json_object_get(sent_rank(s, 5), "note"));
	assert_non_null(strstr(note, "wlb-stacks did not answer"));
	want(s, 18);
	before = reports(s);
	WAIT_FOR(reports(s) >= before + 2, 3000);
	for (int i = 0; i < 2; i++)
		tell(s, "exit %d %d", 4 + i, 0);
	tell(s, "end", 0, 0); /* the agent does not wait for the child */
	WAIT_FOR(agent_ended(s), 1000);
	assert_int_equal(sent(s), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reports_each_second, begin, end),
		cmocka_unit_test_setup_teardown(tells_what_ranks_do, begin, end),
		cmocka_unit_test_setup_teardown(tells_a_bounded_number_of_communicators, begin, end),
		cmocka_unit_test_setup_teardown(tells_how_ranks_ended, begin, end),
		cmocka_unit_test_setup_teardown(tells_again_what_was_not_taken, begin, end),
		cmocka_unit_test_setup_teardown(does_not_wait_at_the_end, begin, end),
		cmocka_unit_test_setup_teardown(obeys_with_force, begin, end),
		cmocka_unit_test_setup_teardown(outlives_slurmstepd, begin, end),
		cmocka_unit_test_setup_teardown(tells_of_a_slurmstepd_that_dies_after_the_goodbye, begin, end),
		cmocka_unit_test_setup_teardown(ends_what_ranks_have_left, begin, end),
		cmocka_unit_test_setup_teardown(one_that_was_given_up_harms_no_rank, begin_unannounced, end),
		cmocka_unit_test_setup_teardown(one_whose_ranks_never_start_ends, begin_unannounced_and_childless, end),
		cmocka_unit_test_setup_teardown(one_whose_ranks_start_late_stays, begin_unannounced, end),
		cmocka_unit_test_setup_teardown(one_that_knows_some_ranks_ends_them_without_slurmstepd,
	                                        begin_unannounced, end),
		cmocka_unit_test_setup_teardown(gathers_stacks_once_for_each_request, begin_with_stacks, end),
		cmocka_unit_test_setup_teardown(reports_while_stacks_do_not_come, begin_with_sleep, end),
	};
	return cmocka_run_group_tests(tests, munged_start, munged_stop);
}
