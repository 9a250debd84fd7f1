#include "coordinator/wlbd/rules/job_end.h"

#include <stdio.h>
#include <string.h>

static bool is_state(const struct wlb_slurm_job *job, const char *state)
{
	return strcmp(job->state, state) == 0;
}

static void close_as(struct wlbd_job_end *end, const char *state)
{
	end->verb = WLBD_JOB_END_CLOSE;
	end->state = state;
}

/* "job 12 ended FAILED with exit code 3" */
static void describe(const struct wlb_slurm_job *job, struct wlbd_job_end *end)
{
	int n = snprintf(end->reason, sizeof(end->reason), "job %u ended %s", job->job_id, job->state);
	if (n < 0 || (size_t)n >= sizeof(end->reason) || !is_state(job, "FAILED"))
		return;
	if (job->exit_signal != 0)
		snprintf(end->reason + n, sizeof(end->reason) - (size_t)n, ", its script killed by signal %d",
		         job->exit_signal);
	else if (job->exit_code != 0)
		snprintf(end->reason + n, sizeof(end->reason) - (size_t)n, " with exit code %d", job->exit_code);
}

/* Whether wlbd and its database answered when a launcher would have reported the end of the run. */
static bool was_recording(const struct wlbd_job_end_facts *facts)
{
	return facts->recording_s > facts->ended_ago_s + WLBD_END_REPORTED_WITHIN_S;
}

/* A launcher reports its end: where it could and did not, it was killed. Where wlbd or its database did not answer, it
 * was not killed if it reported the attempt's end or sent its last report. */
static bool launcher_was_killed(const struct wlbd_job_end_facts *facts)
{
	if (facts->launcher_lost)
		return true;
	return facts->launched && (was_recording(facts) || (!facts->end_reported && !facts->goodbye));
}

/* Rank 0 delivers its last records within a second of its end. What was recorded while wlbd was down takes longer,
 * whoever recorded it. */
static bool must_wait(const struct wlbd_job_end_facts *facts)
{
	bool killed = facts->launcher_lost || facts->job->exit_signal != 0;
	bool end_known = killed || facts->end_reported || facts->goodbye || !facts->launched;
	int64_t limit_s = end_known ? WLBD_LATE_END_S : WLBD_LATE_RECORDS_S;
	return facts->ended_ago_s < (killed ? WLBD_LATE_KILLED_S : limit_s) || facts->recording_s < limit_s;
}

static void judge_killed(const struct wlbd_job_end_facts *facts, struct wlbd_job_end *end)
{
	const struct wlb_slurm_job *job = facts->job;
	end->script_lost = job->exit_signal != 0;
	/* What broke an attempt that had ended before is known. */
	end->launcher_lost = !end->script_lost && !facts->launcher_lost && !facts->end_reported;
	if (!facts->may_requeue) {
		close_as(end, "failed");
		return;
	}
	end->verb = WLBD_JOB_END_REQUEUE;
	if (end->script_lost)
		snprintf(end->reason, sizeof(end->reason), "the script of job %u was killed by signal %d", job->job_id,
		         job->exit_signal);
	else
		snprintf(end->reason, sizeof(end->reason), "wlb run was killed");
}

/* The run was not complete when the script began again. */
static void close_not_reached(const struct wlbd_job_end_facts *facts, struct wlbd_job_end *end)
{
	snprintf(end->reason, sizeof(end->reason),
	         "the script of job %u began again and ended without starting this run's wlb run again", facts->job_id);
	close_as(end, "failed");
}

void wlbd_job_end_judge(const struct wlbd_job_end_facts *facts, struct wlbd_job_end *end)
{
	const struct wlb_slurm_job *job = facts->job;
	*end = (struct wlbd_job_end){.verb = WLBD_JOB_END_WAIT};
	if (facts->complete) {
		close_as(end, "complete");
		return;
	}
	if (job == NULL && facts->recording_s < WLBD_LATE_RECORDS_S)
		return; /* the end may be in a spool that has not arrived yet */
	if (job == NULL) {
		snprintf(end->reason, sizeof(end->reason),
		         "Slurm no longer knows job %u, and the run did not report how it ended", facts->job_id);
		close_as(end, "failed");
		return;
	}
	describe(job, end);
	bool completed = is_state(job, "COMPLETED");
	if (!completed && !is_state(job, "FAILED"))
		close_as(end, is_state(job, "CANCELLED") ? "cancelled" : "failed");
	else if (must_wait(facts))
		end->verb = WLBD_JOB_END_WAIT;
	else if (facts->has_attempt && (job->exit_signal != 0 || launcher_was_killed(facts)))
		judge_killed(facts, end);
	else if (completed && facts->not_reached)
		close_not_reached(facts, end);
	else if (completed && !facts->end_reported)
		close_as(end, "complete");
	else
		close_as(end, "failed");
}
