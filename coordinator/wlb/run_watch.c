#include "coordinator/wlb/run.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coordinator/client/clock.h"
#include "coordinator/slurm/slurm_api.h"

enum {
	LOOK_MS = 200,           /* between two looks at the reporter's orders */
	ORDER_GRACE_MS = 2000,   /* for workers to leave by themselves */
	SRUN_GRACE_MS = 5000,    /* for srun to notice that its step is gone */
	CANCEL_GRACE_MS = 35000, /* KillWait is 30 s by default */
};

/* How far the ending of a step has come. */
enum ending { ENDING_NOT, ENDING_GRACE, ENDING_KILLED, ENDING_TERMINATED, ENDING_FORCED };

struct watch {
	struct wlb_run *run;
	struct wlb_attempt *attempt;
	struct wlb_reporter *reporter;
	pid_t srun;
	bool has_step;
	uint32_t step_id;
	int64_t next_look_ms; /* for the step id */
	enum ending ending;
	int64_t next_ending_ms;
};

static void find_step(struct watch *w)
{
	if (w->has_step || wlb_clock_left_ms(w->next_look_ms) > 0)
		return;
	w->next_look_ms = wlb_clock_ms() + 1000;
	if (wlb_slurm_step_of(w->run->job.job_id, w->srun, &w->step_id, NULL) != 1)
		return;
	w->has_step = true;
	snprintf(w->attempt->step_id, sizeof(w->attempt->step_id), "%" PRIu32 ".%" PRIu32, w->run->job.job_id,
	         w->step_id);
	if (w->reporter != NULL)
		wlb_reporter_step_id(w->reporter, w->attempt->step_id);
}

/* The next, harder means each time: leave alone, kill the step, ask srun to end, kill srun. */
static void end_harder(struct watch *w)
{
	switch (w->ending) {
	case ENDING_NOT:
	case ENDING_FORCED:
		return;
	case ENDING_GRACE:
		if (w->has_step)
			wlb_slurm_step_kill(w->run->job.job_id, w->step_id, SIGKILL, NULL);
		w->ending = ENDING_KILLED;
		break;
	case ENDING_KILLED:
		kill(-w->srun, SIGTERM);
		w->ending = ENDING_TERMINATED;
		break;
	case ENDING_TERMINATED:
		kill(-w->srun, SIGKILL);
		w->ending = ENDING_FORCED;
		break;
	}
	w->next_ending_ms = wlb_clock_ms() + SRUN_GRACE_MS;
}

static void obey_order(struct watch *w)
{
	const char *reason = "";
	if (w->ending != ENDING_NOT || w->reporter == NULL || !wlb_reporter_must_end(w->reporter, &reason))
		return;
	w->attempt->ended_by_order = true;
	snprintf(w->attempt->end_reason, sizeof(w->attempt->end_reason), "%s", reason);
	wlb_run_say("ending attempt %d: %s", w->attempt->number, reason);
	w->ending = ENDING_GRACE;
	w->next_ending_ms = wlb_clock_ms() + ORDER_GRACE_MS;
}

/* True for the signals that end the run. */
static bool take_signal(struct wlb_run *run, int *number)
{
	struct signalfd_siginfo info;
	*number = 0;
	if (read(run->signal_fd, &info, sizeof(info)) != sizeof(info))
		return false;
	*number = (int)info.ssi_signo;
	if (*number != SIGTERM && *number != SIGINT && *number != SIGHUP)
		return false;
	run->cancelled = true;
	return true;
}

static void pass_signal(struct watch *w)
{
	int number;
	bool ends = take_signal(w->run, &number);
	if (number == 0 || number == SIGCHLD)
		return;
	kill(-w->srun, ends ? SIGTERM : number);
	if (!ends || w->ending != ENDING_NOT)
		return;
	w->attempt->cancelled = true;
	snprintf(w->attempt->end_reason, sizeof(w->attempt->end_reason), "cancelled by signal %s",
	         sigabbrev_np(number));
	w->ending = ENDING_TERMINATED;
	w->next_ending_ms = wlb_clock_ms() + CANCEL_GRACE_MS;
}

static bool has_ended(struct watch *w)
{
	siginfo_t info = {0};
	int status;
	if (waitid(P_PID, (id_t)w->srun, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
		return false;
	/* srun's helper is in its group too; until srun is reaped the group's number cannot be someone else's. */
	kill(-w->srun, SIGKILL);
	if (waitpid(w->srun, &status, 0) != w->srun)
		return false;
	w->attempt->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return true;
}

void wlb_run_watch(struct wlb_run *run, struct wlb_attempt *attempt, pid_t srun, struct wlb_reporter *reporter)
{
	struct watch w = {.run = run, .attempt = attempt, .reporter = reporter, .srun = srun};
	struct pollfd ready = {.fd = run->signal_fd, .events = POLLIN};
	while (!has_ended(&w)) {
		find_step(&w);
		obey_order(&w);
		if (w.ending != ENDING_NOT && wlb_clock_left_ms(w.next_ending_ms) == 0)
			end_harder(&w);
		if (poll(&ready, 1, LOOK_MS) > 0)
			pass_signal(&w);
	}
}

bool wlb_run_pause(struct wlb_run *run, int ms)
{
	struct pollfd ready = {.fd = run->signal_fd, .events = POLLIN};
	int64_t until_ms = wlb_clock_ms() + ms;
	int number;
	while (!run->cancelled && wlb_clock_left_ms(until_ms) > 0)
		if (poll(&ready, 1, wlb_clock_left_ms(until_ms)) > 0)
			take_signal(run, &number);
	return !run->cancelled;
}
