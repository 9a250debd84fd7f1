#include "coordinator/wlb/run/stop/time_limit.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/number.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/command/command_words.h"
#include "coordinator/wlb/run/state/job.h"
#include "coordinator/wlb/run/state/journal.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/progress.h"
#include "coordinator/wlb/run/stop/stop_file.h"

enum {
	QUERY_MS = 30000,     /* between two questions to Slurm */
	QUERY_SOON_MS = 5000, /* the same where the command may have to be asked soon */
	SOON_S = 300,
	READ_MS = 1000, /* between two looks at what was recorded */
	MIN_S = 30,
	FIRST_PART = 20,   /* of the time until the limit when `wlb run` starts: before the first save ... */
	FIRST_MAX_S = 300, /* ... which takes a time that is not known, but seldom longer than this */
	GIVEN_MAX_S = 30 * 24 * 3600,
};

/* A longest save may be followed by one that takes longer; ranks that begin a step when they are asked end it first. */
static const double SAVES = 3.0;
/* With a margin of all the time of a job each start of the job would stop at once: the margin is half of that time at
 * most. */
static const double PART_MAX = 0.5;
/* A step that is longer by less is not written: the first steps of a start get longer one after the other. */
static const double LONGER = 1.25;

/* How long before the job's end the command should be asked; 0: never. A trainer other than wlb-worker may not expect
 * SIGUSR1, which then kills the trainer: so its user must say that the trainer saves, unless it asks by itself. */
static double wanted_seconds_before(const struct wlb_run *run)
{
	if (run->job.off)
		return 0.0;
	if (run->limit.is_given)
		return (double)run->limit.given_s;
	if (wlb_run_train_word(run->options.command) < 0 && !run->limit.is_read)
		return 0.0;
	double save_s = wlb_run_longest_s(&run->progress.saves), step_s = wlb_run_longest_s(&run->progress.steps);
	return fmax(MIN_S, (save_s > 0.0 ? SAVES * save_s : run->limit.first_save_s) + step_s);
}

/* How long before the job's end the command is asked. What the user gave counts where it leaves any time to the job. */
static double seconds_before(const struct wlb_run *run)
{
	double wanted_s = wanted_seconds_before(run), total_s = run->limit.total_s;
	if (total_s == 0.0 || (run->limit.is_given && wanted_s < total_s))
		return wanted_s;
	return fmin(wanted_s, fmax(PART_MAX * total_s, run->limit.is_given ? 0.0 : MIN_S));
}

static void tell_bound(struct wlb_run *run)
{
	double wanted_s = wanted_seconds_before(run), before_s = seconds_before(run);
	if (run->limit.is_bound_printed || before_s >= wanted_s)
		return;
	run->limit.is_bound_printed = true;
	wlb_run_print("the command is asked to save %.0f s before the end of the job, and not %.0f s (%s), which would "
	              "leave too little of the %.0f s that it had: submit it with a longer --time",
	              before_s, wanted_s,
	              run->limit.is_given ? "--stop-before-end" : "3 x its longest save + its longest step",
	              run->limit.total_s);
}

double wlb_run_limit_left_s(const struct wlb_run *run)
{
	if (run->job.end_time <= 0)
		return INFINITY;
	return difftime((time_t)run->job.end_time, time(NULL)) + run->job.clock_ahead_s;
}

/* To be called when the job's end was asked for. */
static void set_next_query(struct wlb_run *run)
{
	double left_s = wlb_run_limit_left_s(run);
	if (isfinite(left_s) && left_s > run->limit.total_s)
		run->limit.total_s = left_s;
	bool is_soon = left_s < seconds_before(run) + SOON_S;
	run->limit.next_query_ms = wlb_clock_ms() + (is_soon ? QUERY_SOON_MS : QUERY_MS);
}

/* Whether the cluster preempts jobs at all. What slurmctld does not answer is asked again later: a job that might be
 * preempted is treated as one that may. */
static void ask_for_preemption(struct wlb_run *run)
{
	char type[64] = "";
	if (!wlb_slurm_config("PreemptType", type, sizeof(type)) || type[0] == '\0')
		return;
	run->limit.preemption_is_known = true;
	run->limit.may_be_preempted = strcmp(type, "(null)") != 0 && strcmp(type, "preempt/none") != 0;
}

int wlb_run_limit_read_option(struct wlb_run *run, struct wlb_error *error)
{
	const char *text = run->options.stop_before_end;
	run->limit.is_given = text != NULL;
	return text == NULL ? 0
	                    : wlb_number_parse("--stop-before-end", text, 0, GIVEN_MAX_S, &run->limit.given_s, error);
}

void wlb_run_limit_open(struct wlb_run *run)
{
	wlb_run_journal_read_times(run);
	run->limit.first_save_s = fmin(wlb_run_limit_left_s(run) / FIRST_PART, FIRST_MAX_S);
	set_next_query(run);
	tell_bound(run);
	run->limit.may_be_preempted = seconds_before(run) > 0.0;
	/* Slurm is not asked again where it has just given no answer. */
	if (run->limit.may_be_preempted && run->job.end_time > 0)
		ask_for_preemption(run);
}

/* From its first question on a trainer that asks by itself is asked as wlb-worker is. */
static void look_whether_it_asks(struct wlb_run *run, const char *attempt_id)
{
	if (run->limit.is_read || wlb_run_train_word(run->options.command) >= 0 ||
	    !wlb_run_stop_file_is_read(&run->job, attempt_id))
		return;
	run->limit.is_read = true;
	tell_bound(run);
}

void wlb_run_limit_read_times(struct wlb_run *run, const char *attempt_id)
{
	if (wlb_clock_left_ms(run->limit.next_read_ms) > 0)
		return;
	look_whether_it_asks(run, attempt_id);
	int saves = run->progress.saves.count;
	double before_s = wlb_run_longest_s(&run->progress.steps);
	wlb_run_progress_read(&run->progress, run->job.spool_dir, attempt_id, wlb_clock_ms());
	double step_s = wlb_run_longest_s(&run->progress.steps);
	if (run->progress.saves.count != saves || step_s > LONGER * before_s || LONGER * step_s < before_s) {
		wlb_run_journal_write_times(run);
		tell_bound(run);
	}
	run->limit.next_read_ms = wlb_clock_ms() + READ_MS;
}

enum wlb_run_stop wlb_run_limit_check(struct wlb_run *run)
{
	double before_s = seconds_before(run);
	if (before_s == 0.0)
		return WLB_RUN_STOP_NONE;
	if (wlb_clock_left_ms(run->limit.next_query_ms) == 0) {
		if (wlb_run_job_refresh(&run->job) && !run->limit.preemption_is_known)
			ask_for_preemption(run);
		set_next_query(run);
	}
	if (run->job.is_preempted)
		return WLB_RUN_STOP_PREEMPTED;
	return wlb_run_limit_left_s(run) <= before_s ? WLB_RUN_STOP_LIMIT : WLB_RUN_STOP_NONE;
}

bool wlb_run_limit_is_preempted(struct wlb_run *run)
{
	if (!run->limit.may_be_preempted)
		return false;
	run->job.is_preempted = false; /* also where Slurm does not answer */
	wlb_run_job_refresh(&run->job);
	return run->job.is_preempted;
}
