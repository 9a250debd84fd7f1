#include "coordinator/wlb/run/stop/parent.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"

enum { POLL_MIN_MS = 200, POLL_MAX_MS = 5000 };

void wlb_run_parent_open(struct wlb_run *run)
{
	pid_t parent = getppid();
	run->parent_fd = parent > 1 ? (int)syscall(SYS_pidfd_open, parent, 0) : -1;
	run->parent_gone = parent > 1 && getppid() != parent;
	run->parent_poll_ms = POLL_MIN_MS;
}

void wlb_run_parent_close(struct wlb_run *run)
{
	if (run->parent_fd >= 0)
		close(run->parent_fd);
	run->parent_fd = -1;
}

static bool is_gone(struct wlb_run *run)
{
	struct pollfd ended = {.fd = run->parent_fd, .events = POLLIN};
	if (!run->parent_gone && run->parent_fd >= 0 && poll(&ended, 1, 0) > 0) {
		run->parent_gone = true;
		wlb_run_parent_close(run);
	}
	return run->parent_gone;
}

/* Whether the job was ended by an order or a limit. */
static bool is_cancelled(const char *state)
{
	static const char *const states[] = {"CANCELLED", "TIMEOUT", "PREEMPTED", "DEADLINE"};
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(state, states[i]) == 0)
			return true;
	return false;
}

static void ask_slurm(struct wlb_run *run)
{
	struct wlb_slurm_job job;
	int found = wlb_slurm_job(run->job.job_id, &job, NULL);
	wlb_slurm_job_free(&job);
	run->parent_next_ms = wlb_clock_ms() + run->parent_poll_ms;
	if (run->parent_poll_ms < POLL_MAX_MS)
		run->parent_poll_ms *= 2;
	/* The run continues if Slurm does not answer for the job, or if the script ended on purpose. */
	if (found < 0 || (found == 1 && job.running && job.restart_count == run->job.restart_count))
		return;
	if (found == 1 && is_cancelled(job.state))
		run->cancelled = true;
	else
		run->abandoned = true;
}

void wlb_run_note_job_end(struct wlb_run *run, struct wlb_attempt *attempt)
{
	struct wlb_slurm_job job;
	int found = wlb_slurm_job(run->job.job_id, &job, NULL);
	wlb_slurm_job_free(&job);
	if (found != 1)
		return;
	if (strcmp(job.state, "PENDING") == 0 || job.restart_count != run->job.restart_count) {
		attempt->first_exit = (struct wlb_first_exit){0};
		run->cancelled = true;
		attempt->ended_by = WLB_ENDED_BY_CANCEL;
		snprintf(attempt->end_reason, sizeof(attempt->end_reason), "job %u was requeued", job.job_id);
	} else if (job.finished && is_cancelled(job.state)) {
		run->cancelled = true;
	}
}

bool wlb_run_check_parent(struct wlb_run *run, bool at_once)
{
	if (!wlb_run_must_end(run) && is_gone(run) && (at_once || wlb_clock_left_ms(run->parent_next_ms) == 0))
		ask_slurm(run);
	return wlb_run_must_end(run);
}

void wlb_run_note_sigterm(struct wlb_run *run)
{
	if (is_gone(run) && !run->abandoned)
		ask_slurm(run);
	run->cancelled = !run->abandoned;
}
