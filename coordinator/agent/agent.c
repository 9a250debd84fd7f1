#include "coordinator/agent/agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/agent/gathering.h"
#include "coordinator/agent/hook_copy.h"
#include "coordinator/agent/message.h"
#include "coordinator/agent/process.h"
#include "coordinator/agent/report.h"
#include "coordinator/agent/tasks.h"
#include "coordinator/agent/trainers.h"
#include "coordinator/client/backoff.h"
#include "coordinator/client/client.h"
#include "coordinator/client/end_order.h"

enum {
	PERIOD_MS = 1000,
	REPORT_MS = 2000,   /* one report, answered or not */
	GOODBYE_MS = 500,   /* the last one: nothing of a step remains a second after it */
	NODES_IN_1_MS = 10, /* reports of one event get a random delay, up to 1 ms for this many nodes of the step */
	GOODBYE_DELAY_MAX_MS = 100, /* of the last report, for which the plugin waits */
	ANNOUNCED_MAX_MS = 20000,   /* from the start until all ranks are announced, while slurmstepd runs nothing */
	ORDER_GRACE_MS = 5000,      /* from the order to end until ranks are killed */
	KILL_AGAIN_MS = 1000,       /* a process may have been started meanwhile */
	KILL_MAX_MS = 30000,        /* a process that the kernel does not end by then is left */
	ORPHANS_MAX_MS = 60000,     /* ranks without slurmstepd, while no coordinator knows of them */
	MESSAGES_MAX = 4096,        /* of the plugin that are read before the other work */
	TELL_MAX_MS =
		600000, /* that slurmstepd is gone: while this is reported again to a coordinator that is unavailable */
	STRAYS_ENDING_MS = 300, /* helpers of a rank end by themselves just after it, and were not left */
	STRAYS_GRACE_MS = 2000, /* from SIGTERM until they are killed */
	STRAYS_KILLED_MS = 500, /* for the kernel to end them; what is left of them then is left */
	STRAYS_POLL_MS = 50,
};

static const int64_t never = INT64_MAX;

/*
 * Processes of an attempt that its ranks have left on a node: they left the process group or the session of their rank,
 * and Slurm does not find them unless it tracks the processes of a step by cgroups. They would hold memory of GPUs in
 * the next attempt and after the run. All that ranks have started has the attempt's WLB_ATTEMPT_ID in its environment,
 * and the name of the node in SLURMD_NODENAME, which the attempt's srun lacks; what the job's script has started has no
 * WLB_ATTEMPT_ID, and what a job that a rank has submitted has started has another SLURM_JOB_ID.
 */
struct strays {
	const char *run_id; /* begins with the id of the job */
	const char *attempt_id;
	const char *node;
	int count; /* that were there when they were asked to end */
	int64_t until_ms;
};

struct agent {
	const struct wlb_agent_options *options;
	struct wlb_agent_tasks tasks;
	struct wlb_agent_gathering gathering; /* of stacks */
	struct wlb_connection *connection;
	struct pollfd *polls;
	int hangup_fd; /* readable once the plugin's end of the socket is closed */
	struct wlb_backoff backoff;
	int next_area; /* of the node page, with which the next report begins */
	struct wlb_agent_steps steps;
	struct wlb_agent_calls calls;
	struct wlb_agent_trainers trainers;
	struct wlb_agent_hook_copy hook_copy;
	struct strays strays;

	bool ended;               /* the plugin reported that the step is over */
	bool stepd_gone;          /* the plugin did not report it, and cannot any more */
	bool stepd_gone_accepted; /* the coordinator knows it */
	bool goodbye_accepted;    /* the coordinator knows that no more reports come */
	bool refused;             /* it does not take the last report, at any time */

	int64_t started_ms;
	int64_t urgent_ms; /* when to report something new; never: there is nothing */
	int64_t period_ms; /* when to report next in any case */
	int64_t answered_ms;
	int64_t ordered_ms; /* 0: not ordered to end */
	int64_t killed_ms;  /* 0: none was killed yet */
	int64_t first_kill_ms;
};

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- processes that ranks have left ------------------------------------------------------------------------------ */

/* Sends the signal to them; 0: to none, they are only counted. Returns how many there are. */
static int signal_strays(const struct strays *strays, int number)
{
	char attempt[128], node[320], job[64];
	const char *marks[] = {attempt, node, job, NULL};
	snprintf(attempt, sizeof(attempt), "WLB_ATTEMPT_ID=%s", strays->attempt_id);
	snprintf(node, sizeof(node), "SLURMD_NODENAME=%s", strays->node);
	snprintf(job, sizeof(job), "SLURM_JOB_ID=%lld", strtoll(strays->run_id, NULL, 10));
	return wlb_process_signal_marked(marks, number);
}

/* Asks those to end that have not ended by themselves a moment later. */
static void ask_strays(struct strays *strays)
{
	int64_t ending_until_ms = wlb_clock_ms() + STRAYS_ENDING_MS;
	while (signal_strays(strays, 0) > 0 && wlb_clock_left_ms(ending_until_ms) > 0)
		wlb_clock_sleep_ms(STRAYS_POLL_MS);
	strays->count = signal_strays(strays, SIGTERM);
	strays->until_ms = wlb_clock_ms() + STRAYS_GRACE_MS;
}

/* Returns once they have ended, or are left. */
static void end_strays(const struct strays *strays)
{
	int64_t killed_until_ms = strays->until_ms + STRAYS_KILLED_MS;
	if (strays->count == 0)
		return;
	/* They may start others meanwhile. */
	while (signal_strays(strays, wlb_clock_left_ms(strays->until_ms) > 0 ? 0 : SIGKILL) > 0 &&
	       wlb_clock_left_ms(killed_until_ms) > 0)
		wlb_clock_sleep_ms(STRAYS_POLL_MS);
}

/* ---- reports ---------------------------------------------------------------------------------------------------- */

/* Nodes to which the same happens do not report in the same millisecond. */
static int64_t random_delay_ms(const struct agent *a, int64_t max_ms)
{
	return wlb_random_upto(earlier(a->options->nodes / NODES_IN_1_MS, max_ms));
}

static void report_soon(struct agent *a)
{
	a->urgent_ms = earlier(a->urgent_ms, wlb_clock_ms() + random_delay_ms(a, never));
}

static void order_end(struct agent *a, const char *reason)
{
	if (a->ordered_ms != 0)
		return;
	a->ordered_ms = wlb_clock_ms();
	wlb_node_page_order_end(a->options->page, reason);
}

static void take_reply(struct agent *a, const struct wlb_reply *reply, const struct wlb_agent_report *report)
{
	char reason[WLB_NODE_PAGE_REASON_SIZE];
	/* Another credential may be accepted. */
	a->refused = reply->status >= 400 && reply->status < 500 && reply->status != 401;
	if (reply->status != 200)
		return;
	a->answered_ms = wlb_clock_ms();
	wlb_agent_steps_accepted(&a->steps);
	/* A report of any change is answered with a proof. */
	if (!reply->proved)
		return;
	a->goodbye_accepted = report->goodbye;
	a->stepd_gone_accepted = report->stepd_gone;
	wlb_agent_report_accepted(&a->tasks);
	if (wlb_reply_orders_end(reply, reason, sizeof(reason)))
		order_end(a, reason);
	int64_t wanted = wlb_agent_wanted_stacks(reply);
	if (wanted > 0 && !report->goodbye)
		wlb_agent_gathering_begin(&a->gathering, &a->trainers, wanted);
}

/* Whether the node has nothing to report after this report. */
static bool is_last(const struct agent *a)
{
	return a->ended || wlb_agent_tasks_over(&a->tasks);
}

static void send_report(struct agent *a)
{
	char path[128];
	struct wlb_reply reply;
	struct wlb_agent_report report = {.attempt_id = a->options->attempt_id,
	                                  .node = a->options->node,
	                                  .page = a->options->page,
	                                  .next_area = &a->next_area,
	                                  .steps = &a->steps,
	                                  .calls = &a->calls,
	                                  .trainers = &a->trainers,
	                                  .goodbye = is_last(a),
	                                  .stepd_gone = a->stepd_gone,
	                                  .own_nodes = a->options->only_record ? a->options->nodes : 0};
	/* An end is reported at once. */
	if (!report.goodbye && !wlb_agent_report_pending(&a->tasks))
		wlb_agent_trainers_look(&a->trainers, &a->tasks, wlb_clock_ms());
	char *body = wlb_agent_report_body(&report, &a->tasks);
	if (body == NULL)
		return;
	snprintf(path, sizeof(path), "/v1/runs/%s/report", a->options->run_id);
	wlb_connection_cancel_on(a->connection, report.goodbye || a->stepd_gone ? -1 : a->hangup_fd);
	int rc = wlb_connection_request(a->connection, "POST", path, body, report.goodbye ? GOODBYE_MS : REPORT_MS,
	                                &reply, NULL);
	free(body);
	wlb_backoff_note(&a->backoff, rc != 0);
	if (rc == 0)
		take_reply(a, &reply, &report);
	free(reply.body);
}

/* Whether the coordinator knows all, and that no more reports come. */
static bool is_all_accepted(const struct agent *a)
{
	return a->goodbye_accepted && a->stepd_gone == a->stepd_gone_accepted && !wlb_agent_report_pending(&a->tasks);
}

/* The time of the next report. After the last report with `goodbye` only changes are reported. */
static int64_t report_due(const struct agent *a)
{
	if (!wlb_agent_tasks_complete(&a->tasks))
		return never;
	int64_t period_ms = a->period_ms > a->backoff.until_ms ? a->period_ms : a->backoff.until_ms;
	if (is_all_accepted(a))
		return never;
	return earlier(a->urgent_ms, period_ms);
}

static void report_when_due(struct agent *a)
{
	if (wlb_clock_ms() < report_due(a))
		return;
	a->urgent_ms = never;
	send_report(a);
	while (a->period_ms <= wlb_clock_ms())
		a->period_ms += PERIOD_MS;
}

/* ---- input ------------------------------------------------------------------------------------------------------ */

/* Returns true if there is something to report. */
static bool take_message(struct agent *a, const char *text)
{
	struct wlb_agent_message message = wlb_agent_message_parse(text);
	switch (message.kind) {
	case WLB_AGENT_MESSAGE_TASK:
		wlb_agent_tasks_add(&a->tasks, message.rank, (pid_t)message.value);
		return wlb_agent_tasks_complete(&a->tasks);
	case WLB_AGENT_MESSAGE_EXIT:
		return wlb_agent_tasks_exited(&a->tasks, message.rank, message.value);
	case WLB_AGENT_MESSAGE_END:
		a->ended = true;
		return false;
	default:
		return false;
	}
}

/* Returns true if there is something to report. */
static bool listen_to_plugin(struct agent *a)
{
	char text[WLB_AGENT_MESSAGE_SIZE];
	bool changed = false;
	for (int i = 0; i < MESSAGES_MAX && !a->ended && !a->stepd_gone; i++) {
		ssize_t length = recv(a->options->control_fd, text, sizeof(text) - 1, MSG_DONTWAIT);
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && errno == EAGAIN)
			break;
		if (length <= 0) {
			a->stepd_gone = true;
			return true;
		}
		text[length] = '\0';
		changed = take_message(a, text) || changed;
	}
	return changed;
}

static bool is_silent(const struct agent *a)
{
	return a->stepd_gone || wlb_process_stopped(a->options->stepd);
}

static void check_tasks(struct agent *a)
{
	bool changed = listen_to_plugin(a);
	bool undecided = wlb_agent_tasks_undecided(&a->tasks);
	changed = wlb_agent_tasks_check(&a->tasks, undecided && is_silent(a)) || changed;
	if (changed)
		report_soon(a);
}

static void wait_for_event(struct agent *a, int64_t until_ms)
{
	int count = 0;
	if (wlb_agent_tasks_undecided(&a->tasks))
		until_ms = earlier(until_ms, wlb_clock_ms() + WLB_AGENT_SILENCE_MS);
	if (!a->stepd_gone)
		a->polls[count++] = (struct pollfd){.fd = a->options->control_fd, .events = POLLIN};
	count += wlb_peers_poll(&a->tasks.peers, a->polls + count);
	poll(a->polls, (nfds_t)count, until_ms == never ? -1 : wlb_clock_left_ms(until_ms));
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

/* Ends ranks that neither Slurm, without slurmstepd, nor the coordinator can end. */
static void end_orphans(struct agent *a)
{
	if (a->stepd_gone && wlb_clock_ms() - a->answered_ms >= ORPHANS_MAX_MS)
		order_end(a, "slurmstepd is gone, and the coordinator does not answer");
}

static int kill_all(struct agent *a)
{
	int killed = wlb_peers_kill(&a->tasks.peers);
	/* While slurmstepd runs it ends the processes that the ranks started; what it does not find is ended after
	 * that. */
	if (a->stepd_gone)
		killed += signal_strays(&a->strays, SIGKILL);
	return killed;
}

/* When slurmstepd must have announced all ranks. */
static int64_t announced_due(const struct agent *a)
{
	return wlb_agent_tasks_complete(&a->tasks) || a->stepd_gone ? never : a->started_ms + ANNOUNCED_MAX_MS;
}

/* Whether one of the ranks that were announced runs. */
static bool has_rank(const struct agent *a)
{
	for (int i = 0; i < a->tasks.count; i++)
		if (wlb_process_runs(a->tasks.list[i].pid))
			return true;
	return false;
}

/* Whether slurmstepd failed to start the ranks: with cgroup/v2 it then waits for this process before it tells the
 * plugin that the step is over. Before slurmstepd starts the ranks another plugin may run a program of any length, such
 * as the import of a container's image. */
static bool is_start_overdue(struct agent *a)
{
	if (wlb_clock_ms() < announced_due(a))
		return false;
	if (has_rank(a) || wlb_process_has_other_child(a->options->stepd)) {
		a->started_ms = wlb_clock_ms();
		return false;
	}
	syslog(LOG_WARNING,
	       "run %s on %s: slurmstepd has not announced all ranks, and runs nothing, for %d s: not watched any more",
	       a->options->run_id, a->options->node, ANNOUNCED_MAX_MS / 1000);
	return true;
}

/* Whether no rank was ever announced, and no rank will be. Either this agent was too slow to start: the plugin gave it
 * up, and the step runs without an agent. Or slurmstepd died before it let a rank run, since it announces all ranks
 * before the first one runs (exec_wait of its mgr.c). Neither leaves processes that nobody else ends. */
static bool is_given_up(struct agent *a)
{
	return (a->stepd_gone && a->tasks.count == 0) || is_start_overdue(a);
}

/* Whether the ranks have ended (or slurmstepd died before it reported all), and no slurmstepd ends the processes that
 * they started. */
static bool is_abandoned(const struct agent *a)
{
	return a->stepd_gone && a->tasks.count > 0 &&
	       (wlb_agent_tasks_over(&a->tasks) || !wlb_agent_tasks_complete(&a->tasks));
}

/* The time to kill what is left of the step. */
static int64_t kill_due(const struct agent *a)
{
	bool overdue = a->ordered_ms != 0 && !wlb_agent_tasks_over(&a->tasks);
	if (!overdue && !is_abandoned(a))
		return never;
	if (a->killed_ms != 0)
		return a->killed_ms + KILL_AGAIN_MS;
	return is_abandoned(a) ? 0 : a->ordered_ms + ORDER_GRACE_MS;
}

/* Returns true if nothing of the step is left, or nothing more can be done. */
static bool kill_when_due(struct agent *a)
{
	int64_t now_ms = wlb_clock_ms();
	if (now_ms < kill_due(a))
		return false;
	int killed = kill_all(a);
	if (killed > 0 && a->first_kill_ms == 0) {
		a->first_kill_ms = now_ms;
		syslog(LOG_WARNING, "run %s on %s: %d processes are killed: %s", a->options->run_id, a->options->node,
		       killed, a->stepd_gone ? "their slurmstepd is gone" : "they did not end by order");
	}
	a->killed_ms = now_ms;
	bool given_up = a->first_kill_ms != 0 && now_ms - a->first_kill_ms > KILL_MAX_MS;
	return a->stepd_gone && ((killed == 0 && is_abandoned(a)) || given_up);
}

/* Whether the coordinator does not know all yet. */
static bool has_to_tell(const struct agent *a)
{
	return !a->refused && wlb_agent_tasks_complete(&a->tasks) && !is_all_accepted(a);
}

/* Sends the last report, once the step has ended. If slurmstepd is gone, only this agent knows it, and the ranks of
 * other nodes would wait for ever; so the report is repeated until it is accepted. */
static void send_last_report(struct agent *a)
{
	int64_t until_ms = wlb_clock_ms() + (a->stepd_gone ? TELL_MAX_MS : 0);
	if (has_to_tell(a)) {
		poll(NULL, 0, (int)random_delay_ms(a, GOODBYE_DELAY_MAX_MS));
		send_report(a);
	}
	while (has_to_tell(a) && wlb_clock_left_ms(until_ms) > 0) {
		int64_t next_ms = wlb_clock_ms() + PERIOD_MS;
		poll(NULL, 0, wlb_clock_left_ms(next_ms > a->backoff.until_ms ? next_ms : a->backoff.until_ms));
		send_report(a);
	}
}

/* slurmstepd has ended what it found of the step, and the user's epilogs of tasks are over. */
static void end_what_is_left(const struct agent *a)
{
	char text[WLB_AGENT_MESSAGE_SIZE];
	if (a->strays.count == 0)
		return;
	end_strays(&a->strays);
	snprintf(text, sizeof(text), "ended %d", a->strays.count);
	(void)!send(a->options->control_fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	syslog(LOG_NOTICE, "run %s on %s: %d processes that ranks had left were ended", a->options->run_id,
	       a->options->node, a->strays.count);
}

static void watch_step(struct agent *a)
{
	a->urgent_ms = never;
	a->started_ms = wlb_clock_ms();
	a->answered_ms = a->started_ms;
	/* From the second report on, nodes that began together report at any moment of the second. */
	a->period_ms = wlb_clock_ms() + PERIOD_MS / 2 + wlb_random_upto(PERIOD_MS / 2);
	for (bool over = false; !over && !a->ended;) {
		check_tasks(a);
		if (a->ended)
			break;
		report_when_due(a);
		wlb_agent_gathering_check(&a->gathering);
		end_orphans(a);
		over = kill_when_due(a) || is_given_up(a);
		if (!over)
			wait_for_event(a, earlier(announced_due(a), earlier(report_due(a), kill_due(a))));
	}
	wlb_agent_hook_copy_end(&a->hook_copy);
	if (a->ended && !a->options->only_record)
		ask_strays(&a->strays);
	send_last_report(a);
	if (a->ended)
		end_what_is_left(a);
}

/* ---- start and end ---------------------------------------------------------------------------------------------- */

/* Readable when the plugin's end is closed, not when a message comes: only the former cancels a request. */
static int open_hangup_fd(int control_fd)
{
	struct epoll_event hangup = {.events = EPOLLRDHUP};
	int fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, control_fd, &hangup) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_parts(struct agent *a, const struct wlb_client_config *config, struct wlb_error *error)
{
	a->hangup_fd = open_hangup_fd(a->options->control_fd);
	if (a->hangup_fd < 0)
		return wlb_fail(error, "no file descriptor: %s", strerror(errno));
	a->connection = wlb_connection_new(config);
	a->polls = calloc((size_t)a->options->tasks + 1, sizeof(*a->polls));
	if (a->connection == NULL || a->polls == NULL)
		return wlb_fail(error, "no memory");
	return wlb_agent_tasks_open(&a->tasks, a->options->tasks, error);
}

int wlb_agent_run(const struct wlb_agent_options *options, const struct wlb_client_config *config,
                  struct wlb_error *error)
{
	struct agent a = {
		.options = options,
		.hangup_fd = -1,
		.strays = {.run_id = options->run_id, .attempt_id = options->attempt_id, .node = options->node}};
	a.gathering = (struct wlb_agent_gathering){.program = options->stacks_program,
	                                           .run_id = options->run_id,
	                                           .attempt_id = options->attempt_id,
	                                           .node = options->node,
	                                           .page = options->page,
	                                           .config = config};
	int rc = open_parts(&a, config, error);
	if (rc == 0) {
		wlb_agent_hook_copy_begin(&a.hook_copy, options->node);
		watch_step(&a);
	}
	wlb_agent_gathering_end(&a.gathering);
	wlb_agent_tasks_close(&a.tasks);
	wlb_agent_steps_free(&a.steps);
	wlb_agent_calls_free(&a.calls);
	wlb_agent_trainers_free(&a.trainers);
	wlb_connection_free(a.connection);
	free(a.polls);
	if (a.hangup_fd >= 0)
		close(a.hangup_fd);
	return rc;
}
