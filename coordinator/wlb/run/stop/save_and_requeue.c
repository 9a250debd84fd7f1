#include "coordinator/wlb/run/stop/save_and_requeue.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/command.h"
#include "common/exit_saved.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/command/command_words.h"
#include "coordinator/wlb/run/command/input.h"
#include "coordinator/wlb/run/state/deliver_records.h"
#include "coordinator/wlb/run/state/journal.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/progress.h"
#include "coordinator/wlb/run/state/record.h"
#include "coordinator/wlb/run/stop/grow.h"
#include "coordinator/wlb/run/stop/same_dir.h"
#include "coordinator/wlb/run/stop/signals.h"
#include "coordinator/wlb/run/stop/stop_file.h"
#include "coordinator/wlb/run/stop/time_limit.h"

enum {
	AGAIN_MS = 10000,
	DELIVER_MS = 5000,           /* for the records, before the job is requeued */
	REQUEUED_MS = 10000,         /* for Slurm to end this process */
	SCRIPT_MS = 500,             /* for its signal to reach the script too */
	UNAVAILABLE_MS = 30 * 60000, /* how long Slurm is asked while it does not answer */
	RETRY_MS = 2000,
	OTHERS_MS = 1000, /* between two looks at the other runs of the job */
	LAST_S = 10,      /* before the job's end, to deliver the records and have it requeued */
	FAILURES_MAX = 3, /* of requests to requeue the job, which it may be */
};

static const char not_continued[] =
	"a requeued job would start from step 0: give wlb-worker the same directory in --save and --load";

static bool is_worker(const struct wlb_run *run)
{
	return wlb_run_train_word(run->options.command) >= 0;
}

static const char *why(const struct wlb_run *run, const struct wlb_attempt *attempt)
{
	switch (attempt->stop) {
	case WLB_RUN_STOP_LIMIT:
		return "the time limit is near";
	case WLB_RUN_STOP_PREEMPTED:
		return "the job is preempted";
	case WLB_RUN_STOP_GROW:
		return run->grow.why;
	case WLB_RUN_STOP_USER:
	case WLB_RUN_STOP_NONE:
		break;
	}
	return "SIGUSR1";
}

static void record_asked(const struct wlb_run *run, const struct wlb_attempt *attempt, struct wlb_reporter *reporter)
{
	char detail[384];
	int length = snprintf(detail, sizeof(detail), "%s: asked to save and stop", why(run, attempt));
	if (attempt->stop == WLB_RUN_STOP_GROW)
		snprintf(detail + length, sizeof(detail) - (size_t)length, ", to go on with %d nodes", run->grow.nodes);
	else if (attempt->stop != WLB_RUN_STOP_USER)
		snprintf(detail + length, sizeof(detail) - (size_t)length, " %.0f s before the end of the job",
		         wlb_run_limit_left_s(run));
	wlb_run_print("attempt %d: %s", attempt->number, detail);
	wlb_run_record_event(reporter, "stop_asked", detail);
}

/* While the coordinator does not answer, nobody says how a run goes on whose attempt has ended; it does not go on where
 * the next attempt would lack input. */
static bool can_grow(struct wlb_run *run, const struct wlb_attempt *attempt, const struct wlb_reporter *reporter)
{
	if (run->connection != NULL && (reporter == NULL || wlb_reporter_unavailable(reporter)))
		return false;
	if (wlb_run_input_check(&run->input, NULL) != 0)
		return false;
	return wlb_run_grow_check(run, attempt);
}

static void ask_by_file(const struct wlb_run *run, const struct wlb_attempt *attempt)
{
	struct wlb_error error;
	if (wlb_run_stop_file_ask(&run->job, attempt->id, &error) != 0)
		wlb_run_print("attempt %d: its trainer is not asked: %s", attempt->number, error.message);
}

bool wlb_run_ask_for_user(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_reporter *reporter)
{
	run->limit.next_read_ms = 0; /* it may have looked at its file for the first time just now */
	wlb_run_limit_read_times(run, attempt->id);
	if (!run->limit.is_read)
		return false;
	if (attempt->stop != WLB_RUN_STOP_NONE)
		return true;
	attempt->stop = WLB_RUN_STOP_USER;
	record_asked(run, attempt, reporter);
	ask_by_file(run, attempt);
	return true;
}

void wlb_run_ask_to_save(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_reporter *reporter, pid_t srun)
{
	if (attempt->stop == WLB_RUN_STOP_NONE) {
		attempt->stop = wlb_run_limit_check(run);
		if (attempt->stop == WLB_RUN_STOP_NONE && can_grow(run, attempt, reporter))
			attempt->stop = WLB_RUN_STOP_GROW;
		if (attempt->stop == WLB_RUN_STOP_NONE)
			return;
		record_asked(run, attempt, reporter);
	} else if (!is_worker(run) || wlb_clock_left_ms(attempt->next_stop_ms) > 0) {
		return;
	}
	/* SIGUSR1 kills a program that does not expect it. */
	if (run->limit.is_read)
		ask_by_file(run, attempt);
	else
		kill(srun, SIGUSR1);
	attempt->next_stop_ms = wlb_clock_ms() + AGAIN_MS;
}

/* Another trainer may also end with exit code 0 when it was asked: whether it had completed shows when it is started
 * again. */
static bool has_stopped(const struct wlb_run *run, const struct wlb_attempt *attempt)
{
	if (attempt->ended_by != WLB_ENDED_BY_ITSELF)
		return false;
	return attempt->exit_code == WLB_EXIT_SAVED ||
	       (attempt->exit_code == 0 && attempt->stop != WLB_RUN_STOP_NONE && !is_worker(run));
}

void wlb_run_note_stop(struct wlb_run *run, struct wlb_attempt *attempt)
{
	struct wlb_run_progress *progress = &run->progress;
	run->limit.next_read_ms = 0; /* the last save may have been recorded just now */
	wlb_run_limit_read_times(run, attempt->id);
	int64_t step = progress->saved_step;
	attempt->has_saved = step >= 0;
	wlb_run_progress_reset(progress);
	attempt->stopped = has_stopped(run, attempt);
	if (!attempt->stopped)
		return;
	if (!is_worker(run))
		snprintf(attempt->end_reason, sizeof(attempt->end_reason), "%s: the command has stopped",
		         why(run, attempt));
	else if (step < 0)
		snprintf(attempt->end_reason, sizeof(attempt->end_reason), "%s: saved and stopped", why(run, attempt));
	else
		snprintf(attempt->end_reason, sizeof(attempt->end_reason), "%s: saved step %" PRId64 " and stopped",
		         why(run, attempt), step);
}

bool wlb_run_continues_from_save(const struct wlb_run *run)
{
	char *const *words = run->options.command;
	const char *save = wlb_run_word_value(words, "--save"), *load = wlb_run_word_value(words, "--load");
	bool goes_on_from_save = wlb_run_has_word(words, "--finetune"); /* whatever --load names */
	return !is_worker(run) ||
	       (save != NULL && load != NULL && (goes_on_from_save || wlb_run_is_same_dir(save, load)));
}

/* Slurm is not asked again where it has just given no answer. */
static bool is_requeued_at_limit(const struct wlb_run *run)
{
	struct wlb_slurm_job job;
	if (run->job.end_time <= 0 || wlb_slurm_job(run->job.job_id, &job, NULL) != 1)
		return false;
	wlb_slurm_job_free(&job);
	return job.batch && job.requeue && job.is_limited;
}

void wlb_run_print_why_not_requeued(const struct wlb_run *run)
{
	const struct wlb_run_limit *limit = &run->limit;
	bool is_never_asked = limit->is_given && limit->given_s == 0, is_unknown = !is_worker(run) && !limit->is_given;
	if (is_never_asked || (!is_unknown && wlb_run_continues_from_save(run)) || !is_requeued_at_limit(run))
		return;
	if (is_unknown)
		wlb_run_print(
			"%s is not asked to save before the job's time limit unless it calls wlb.should_stop(); if "
			"it saves and stops at SIGUSR1, give --stop-before-end SECONDS to `wlb run`",
			run->options.command[0]);
	else
		wlb_run_print("the run will end at the job's time limit: %s", not_continued);
}

enum requeue { REQUEUE_REFUSED = -1, REQUEUE_POSSIBLE, REQUEUE_DONE, REQUEUE_NO_ANSWER };

/* Refuses, with the remedy, where the job must not be requeued, or Slurm would not do so. */
static enum requeue check_requeue(const struct wlb_run *run, struct wlb_error *error)
{
	uint32_t job_id = run->job.job_id;
	struct wlb_slurm_job job;
	int found = wlb_slurm_job(job_id, &job, error);
	wlb_slurm_job_free(&job);
	if (found < 0)
		return REQUEUE_NO_ANSWER;
	if (found == 1 && (strcmp(job.state, "PENDING") == 0 || job.restart_count != run->job.restart_count))
		return REQUEUE_DONE;
	if (found == 0 || !job.running)
		wlb_fail(error, "job %" PRIu32 " is over: submit it again; it continues from its checkpoint", job_id);
	else if (!job.batch)
		wlb_fail(error, "Slurm requeues only sbatch jobs: submit the command in a new job; it continues from "
		                "its checkpoint");
	else if (!job.requeue)
		wlb_fail(error, "the job was submitted without --requeue: submit it again; it continues from its "
		                "checkpoint (with sbatch --requeue Slurm does that)");
	else
		return REQUEUE_POSSIBLE;
	return REQUEUE_REFUSED;
}

/* Has Slurm requeue the job, or say whether Slurm would. Slurm is asked until slurmctld answers. */
static enum requeue ask_slurm(struct wlb_run *run, bool to_requeue, struct wlb_error *error)
{
	int64_t until_ms = wlb_clock_ms() + UNAVAILABLE_MS;
	int failures = 0;
	for (;;) {
		enum requeue state = check_requeue(run, error);
		if (state == REQUEUE_POSSIBLE && to_requeue && wlb_slurm_requeue(run->job.job_id, error) == 0)
			return REQUEUE_DONE;
		failures += state == REQUEUE_POSSIBLE;
		if (state == REQUEUE_REFUSED || state == REQUEUE_DONE || (state == REQUEUE_POSSIBLE && !to_requeue))
			return state;
		if (failures == FAILURES_MAX || wlb_clock_left_ms(until_ms) == 0 || !wlb_run_pause(run, RETRY_MS))
			return REQUEUE_NO_ANSWER;
	}
}

/* A requeue ends all processes of the job. Another run of the job may save faster, and be asked to save later: it keeps
 * the time until then. Returns false where this run has to end before. */
static bool wait_for_others(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	if (!wlb_run_journal_others_work(run))
		return true;
	wlb_run_journal_leave(run);
	wlb_run_print("attempt %d: %s; the job is requeued once the other wlb run of the job has ended or saved, or %d "
	              "s before the job's end",
	              attempt->number, attempt->end_reason, LAST_S);
	while (wlb_run_journal_others_work(run) && wlb_run_limit_left_s(run) > LAST_S) {
		wlb_run_limit_check(run); /* it asks for the job's end again */
		if (!wlb_run_pause(run, OTHERS_MS))
			return false;
	}
	return true;
}

int wlb_run_requeue(struct wlb_run *run, const struct wlb_attempt *attempt, struct wlb_error *error)
{
	uint32_t job_id = run->job.job_id;
	if (!wlb_run_continues_from_save(run))
		return wlb_fail(error, "%s, and submit the job again", not_continued);
	enum requeue state = ask_slurm(run, false, error);
	if (state != REQUEUE_POSSIBLE && state != REQUEUE_DONE)
		return -1;
	/* The other run may have had the job requeued meanwhile. */
	if (!wait_for_others(run, attempt) && check_requeue(run, error) != REQUEUE_DONE)
		return wlb_fail(error, "the job was ended while another wlb run of it worked");
	run->end_until_ms = wlb_clock_ms() + DELIVER_MS;
	wlb_run_deliver_last(run);
	if (ask_slurm(run, true, error) != REQUEUE_DONE)
		return -1;
	wlb_run_print("attempt %d: %s; job %" PRIu32 " is requeued and continues from its checkpoint", attempt->number,
	              attempt->end_reason, job_id);
	/* The script must not go on with its next line meanwhile. Slurm signals the processes of the job one after the
	 * other, and the script may be the last. */
	wlb_run_pause(run, REQUEUED_MS);
	poll(NULL, 0, SCRIPT_MS);
	return 0;
}
