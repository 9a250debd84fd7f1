#include "coordinator/wlb/run/attempt/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/attempt/attempt_end.h"
#include "coordinator/wlb/run/attempt/first_error.h"
#include "coordinator/wlb/run/attempt/srun_output.h"
#include "coordinator/wlb/run/attempt/step_end.h"
#include "coordinator/wlb/run/check/suspects.h"
#include "coordinator/wlb/run/command/input.h"
#include "coordinator/wlb/run/state/job.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/record.h"
#include "coordinator/wlb/run/stop/parent.h"
#include "coordinator/wlb/run/stop/save_and_requeue.h"
#include "coordinator/wlb/run/stop/signals.h"
#include "coordinator/wlb/run/stop/time_limit.h"

enum {
	POLL_MS = 200,           /* between two checks of the reporter's orders */
	ORDER_GRACE_MS = 2000,   /* for workers to end by themselves */
	SRUN_LOST_MS = 1000,     /* for slurmctld to tell srun of lost nodes, where all other tasks have ended */
	CANCEL_GRACE_MS = 35000, /* KillWait is 30 s by default */
	DRAIN_MS = 1000,         /* for the last output of srun, if no process reads our stderr */
	STARTED_MS = 3000,       /* from the step's creation until its tasks take a signal in their own way */
};

struct watch {
	struct wlb_run *run;
	struct wlb_attempt *attempt;
	struct wlb_reporter *reporter;
	struct wlb_srun srun;
	double begin_s;         /* since 1970 */
	int64_t started_ms;     /* when its tasks may be asked to stop */
	unsigned noted_signals; /* of scan.step_signals: Slurm was asked why it has sent them */
	int64_t next_query_ms;  /* of the step id */
	struct wlb_step_end ending;
	int64_t lost_alone_ms; /* when tasks of lost nodes alone have been left for SRUN_LOST_MS; 0: others are left */
	struct wlb_srun_output output;
	struct wlb_first_exit_scan scan;
	struct wlb_output_tail *tail; /* of srun's stderr */
	double launch_failed_s;       /* since 1970; 0: the launch has not failed */
	struct wlb_run_slurm_end slurm_end;
};

static void find_step(struct watch *w)
{
	if (w->srun.has_step || wlb_clock_left_ms(w->next_query_ms) > 0)
		return;
	w->next_query_ms = wlb_clock_ms() + 1000;
	if (wlb_slurm_step_of(w->run->job.job_id, w->srun.pid, &w->srun.step_id, NULL) != 1)
		return;
	w->srun.has_step = true;
	w->started_ms = wlb_clock_ms() + STARTED_MS;
	snprintf(w->attempt->step_id, sizeof(w->attempt->step_id), "%" PRIu32 ".%" PRIu32, w->run->job.job_id,
	         w->srun.step_id);
	if (w->reporter == NULL)
		return;
	wlb_reporter_step_id(w->reporter, w->attempt->step_id);
	/* Commands other than wlb-worker record nothing, so their start is recorded here. */
	wlb_run_record_event(w->reporter, "step_started", w->attempt->step_id);
}

static void end_by_order(struct watch *w)
{
	const char *reason = "";
	if (w->ending.measure != WLB_STEP_END_NOT || w->reporter == NULL ||
	    !wlb_reporter_must_end(w->reporter, &reason))
		return;
	w->attempt->ended_by = WLB_ENDED_BY_ORDER;
	w->scan.ignore_rest = true;
	wlb_text_format(w->attempt->end_reason, sizeof(w->attempt->end_reason), "%s", reason);
	wlb_run_print("ending attempt %d: %s", w->attempt->number, reason);
	wlb_step_end_note(&w->ending, WLB_STEP_END_GRACE, ORDER_GRACE_MS);
}

/* srun waits for the tasks of a lost node until slurmctld tells it of the loss by a message to the node that it is on,
 * which a network may not let through. Slurm kills the step where the lost node runs again. */
static void end_waiting_srun(struct watch *w)
{
	if (w->ending.measure == WLB_STEP_END_NOT || w->ending.measure == WLB_STEP_END_FORCED ||
	    w->attempt->ended_by != WLB_ENDED_BY_ORDER || !wlb_reporter_survivors_ended(w->reporter))
		return;
	if (w->lost_alone_ms == 0)
		w->lost_alone_ms = wlb_clock_ms() + SRUN_LOST_MS;
	if (wlb_clock_left_ms(w->lost_alone_ms) > 0)
		return;
	if (w->ending.measure == WLB_STEP_END_GRACE)
		wlb_step_end_escalate(&w->ending, w->run->job.job_id, &w->srun);
	wlb_run_print("attempt %d: srun is ended, since it waits for tasks of lost nodes alone", w->attempt->number);
	wlb_step_end_force(&w->ending, &w->srun);
}

/* Slurm sends the tasks SIGTERM when the grace time of a preemption begins, and wlb-worker then waits for what follows.
 */
static void ask_to_stop(struct watch *w)
{
	wlb_run_limit_read_times(w->run, w->attempt->id);
	if (w->ending.measure != WLB_STEP_END_NOT || !w->srun.has_step || wlb_clock_left_ms(w->started_ms) > 0)
		return;
	if (w->scan.step_signals != w->noted_signals) {
		w->noted_signals = w->scan.step_signals;
		wlb_run_limit_is_preempted(w->run);
	}
	wlb_run_ask_to_save(w->run, w->attempt, w->reporter, w->srun.pid);
}

static void end_cancelled(struct watch *w, const char *why)
{
	w->attempt->ended_by = WLB_ENDED_BY_CANCEL;
	w->scan.ignore_rest = true;
	wlb_text_format(w->attempt->end_reason, sizeof(w->attempt->end_reason), "%s", why);
	wlb_step_end_note(&w->ending, WLB_STEP_END_TERMINATED, CANCEL_GRACE_MS);
}

/* If the job is over, Slurm ends its steps: srun then only has to end. */
static void check_job(struct watch *w)
{
	if (!wlb_run_check_parent(w->run, false))
		return;
	if (w->run->abandoned) {
		wlb_step_end_force(&w->ending, &w->srun);
	} else if (w->ending.measure == WLB_STEP_END_NOT) {
		kill(-w->srun.pid, SIGTERM);
		end_cancelled(w, "cancelled by Slurm");
	}
}

static void pass_signal(struct watch *w)
{
	int number;
	char why[64];
	bool ends = wlb_run_signal_read(w->run, &number);
	if (number == 0 || number == SIGCHLD || w->run->abandoned)
		return;
	if (number == SIGUSR1 && wlb_run_ask_for_user(w->run, w->attempt, w->reporter))
		return;
	kill(-w->srun.pid, ends ? SIGTERM : number);
	if (!ends || w->ending.measure != WLB_STEP_END_NOT)
		return;
	snprintf(why, sizeof(why), "cancelled by signal %s", sigabbrev_np(number));
	end_cancelled(w, why);
}

/* Another process killed srun: the ends of its tasks after that are not the cause. */
static void note_srun_killed(struct watch *w, int number)
{
	w->attempt->srun_signal = number;
	w->run->killed_srun = w->srun.pid;
	w->scan.ignore_rest = true;
	wlb_text_format(w->attempt->end_reason, sizeof(w->attempt->end_reason), "srun was killed by signal %d", number);
}

static bool has_ended(struct watch *w)
{
	siginfo_t info = {0};
	int status;
	bool is_known = waitid(P_PID, (id_t)w->srun.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
	if (is_known && info.si_pid == 0)
		return false;
	/* srun's helper process is in its group too; until srun is reaped no other group can have its number. */
	if (is_known)
		kill(-w->srun.pid, SIGKILL);
	if (wlb_child_wait(w->srun.pid, 0, &status) != 1)
		wlb_text_format(w->attempt->end_reason, sizeof(w->attempt->end_reason),
		                "how srun ended is not known: %s", strerror(errno));
	w->attempt->exit_code = wlb_child_code(status);
	if (WIFSIGNALED(status) && w->ending.measure == WLB_STEP_END_NOT)
		note_srun_killed(w, WTERMSIG(status));
	return true;
}

/* The coordinator is told at once that no rank is the cause, since the ranks may end before srun does. */
static void tell_slurm_end(struct watch *w)
{
	const struct wlb_slurm_end *found = &w->scan.slurm_end;
	const struct wlb_refusal *refusal = &w->scan.refusal;
	struct wlb_run_slurm_end *end = &w->slurm_end;
	bool is_refused = wlb_attempt_end_is_refused(w->run, w->attempt, &w->scan);
	if ((!found->known && !is_refused) || end->why[0] != '\0')
		return;
	end->time_s = wlb_clock_unix_s();
	end->is_certain = is_refused || found->is_certain;
	wlb_text_format(end->why, sizeof(end->why), "%s%s%s", is_refused ? refusal->why : found->why,
	                is_refused ? "; " : "", is_refused ? refusal->remedy : "");
	if (w->reporter != NULL)
		wlb_reporter_slurm_end(w->reporter, end->why, end->time_s, end->is_certain);
}

static void pass_on(struct watch *w)
{
	size_t count = wlb_srun_output_pass(&w->output);
	if (count == 0)
		return;
	wlb_first_exit_feed(&w->scan, w->output.bytes, count);
	wlb_output_tail_add(w->tail, w->output.bytes, count);
	if (w->scan.first.known || w->ending.measure != WLB_STEP_END_NOT)
		wlb_output_tail_close(w->tail);
	if (w->scan.launch.known && w->launch_failed_s == 0)
		w->launch_failed_s = wlb_clock_unix_s();
	tell_slurm_end(w);
}

/* All output of srun is in the pipe by now; the run does not wait for a stray process that still holds the pipe. */
static void drain(struct watch *w)
{
	int64_t until_ms = wlb_clock_ms() + DRAIN_MS;
	while (wlb_clock_left_ms(until_ms) > 0) {
		struct pollfd ready = wlb_srun_output_side(&w->output);
		if (poll(&ready, 1, w->output.count > 0 ? wlb_clock_left_ms(until_ms) : 0) <= 0)
			break;
		pass_on(w);
	}
	if (w->output.fd >= 0)
		close(w->output.fd);
}

/* A step that ended before Slurm was asked for it has run all the same where its tasks have ended. */
static void note_short_step(const struct watch *w)
{
	if (!w->srun.has_step && (w->attempt->exit_code == 0 || w->scan.first.known))
		wlb_run_record_of(w->reporter, "event", json_pack("{s:s, s:s}", "kind", "step_started", "detail", ""),
		                  w->begin_s);
}

static void record_ended_processes(const struct watch *w)
{
	char detail[128];
	if (w->scan.ended_processes == 0)
		return;
	snprintf(detail, sizeof(detail), "%d process%s that ranks had left on %d node%s", w->scan.ended_processes,
	         w->scan.ended_processes == 1 ? "" : "es", w->scan.ended_on_nodes,
	         w->scan.ended_on_nodes == 1 ? "" : "s");
	wlb_run_record_event(w->reporter, "processes_ended", detail);
}

/* Carries out what is due without a look at srun's output or signals. */
static void act(struct watch *w)
{
	check_job(w);
	find_step(w);
	end_by_order(w);
	end_waiting_srun(w);
	ask_to_stop(w);
	if (w->srun.has_step && w->ending.measure == WLB_STEP_END_NOT)
		wlb_run_suspects_check(w->run, w->attempt);
	if (wlb_clock_left_ms(w->ending.next_ms) == 0)
		wlb_step_end_escalate(&w->ending, w->run->job.job_id, &w->srun);
}

/* Waits for output, signals, the end of the script, and input. */
static void wait_and_pass(struct watch *w)
{
	struct wlb_run *run = w->run;
	struct pollfd ready[] = {wlb_srun_output_side(&w->output),
	                         {.fd = run->signal_fd, .events = POLLIN},
	                         {.fd = run->parent_fd, .events = POLLIN},
	                         wlb_run_input_side(&run->input)};
	if (poll(ready, 4, POLL_MS) <= 0)
		return;
	if (ready[0].revents != 0)
		pass_on(w);
	if (ready[1].revents != 0)
		pass_signal(w);
	if (ready[3].revents != 0)
		wlb_run_input_pass(&run->input);
}

/* The tasks of nodes that Slurm took from the job have ended badly, though srun need not say so. */
static void note_lost_tasks(struct watch *w)
{
	struct wlb_run_job *job = &w->run->job;
	const struct wlb_attempt *attempt = w->attempt;
	if (w->scan.ended.bits == NULL || attempt->exit_code == 0)
		return;
	wlb_run_job_refresh(job);
	for (int node = 0, first = 0; node < attempt->node_count; node++) {
		int tasks = wlb_attempt_tasks_on(attempt, node);
		if (!wlb_run_job_has_node(job, attempt->nodes[node]))
			wlb_ended_tasks_note_range(&w->scan.ended, first, tasks);
		first += tasks;
	}
}

/* srun has ended: finds how the attempt did. */
static void find_end(struct watch *w)
{
	const struct wlb_attempt_end_facts facts = {
		.scan = &w->scan, .launch_failed_s = w->launch_failed_s, .slurm_end = &w->slurm_end};
	note_short_step(w);
	note_lost_tasks(w);
	wlb_attempt_end_find(w->run, w->attempt, &facts);
	wlb_run_note_stop(w->run, w->attempt);
	wlb_attempt_end_explain(w->attempt, &facts);
	wlb_run_find_error(w->run, w->attempt, w->tail);
	record_ended_processes(w);
}

void wlb_run_watch(struct wlb_run *run, struct wlb_attempt *attempt, pid_t srun, int srun_stderr,
                   struct wlb_reporter *reporter)
{
	static struct wlb_output_tail tail; /* larger than some stacks */
	struct watch w = {.run = run,
	                  .attempt = attempt,
	                  .reporter = reporter,
	                  .srun.pid = srun,
	                  .begin_s = wlb_clock_unix_s(),
	                  .output.fd = srun_stderr,
	                  .tail = &tail};
	memset(&tail, 0, sizeof(tail));
	attempt->first_exit = (struct wlb_first_exit){0};
	attempt->launch_failure = (struct wlb_run_launch_failure){0};
	attempt->slurm_end = (struct wlb_run_slurm_end){0};
	attempt->srun_signal = 0;
	if (run->options.on_rank_exit == WLB_ON_RANK_EXIT_CONTINUE)
		wlb_ended_tasks_begin(&w.scan.ended, wlb_attempt_tasks(attempt));
	while (!has_ended(&w)) {
		act(&w);
		wait_and_pass(&w);
	}
	wlb_run_input_end(&run->input);
	/* Slurm knew of the job's end before srun did. */
	if (attempt->exit_code != 0)
		wlb_run_check_parent(run, true);
	drain(&w);
	find_end(&w);
	wlb_ended_tasks_free(&w.scan.ended);
}
