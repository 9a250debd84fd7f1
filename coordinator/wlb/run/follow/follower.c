#include "coordinator/wlb/run/follow/follower.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/wlb/run/command/command_words.h"
#include "coordinator/wlb/run/follow/event_source.h"
#include "coordinator/wlb/run/follow/hook.h"
#include "coordinator/wlb/run/follow/line_files.h"
#include "coordinator/wlb/run/follow/output_file.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/record.h"
#include "follow/stdout_line.h"

enum {
	PERIOD_MS = 1000,
	LINES_MOST = 1000, /* read in a period of each kind of file: more stay in it for the next */
	OUTPUTS = 2,       /* stdout, and stderr where it goes elsewhere */
	END_PAUSE_MS = 5,
};

struct wlb_run_follower {
	/* Shared with the thread, under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_stopping, is_done;
	bool is_left;                  /* the caller has gone: the thread frees it */
	int64_t end_ms;                /* by when the rest is to be read */
	struct wlb_reporter *reporter; /* NULL once the caller has gone */
	bool is_failure_printed;

	/* The thread's own. */
	struct wlb_merged_records records;
	struct wlb_line_files *metrics, *hook; /* NULL: none */
	bool is_hook_copied;                   /* what is read of the hook is late */
	struct wlb_event_source events;
	struct wlb_output_file *outputs[OUTPUTS];
	int attempt;
};

/* ---- names --------------------------------------------------------------------------------------------------- */

void wlb_run_metrics_files(const struct wlb_run_job *job, const char *attempt_id, char *begin, size_t size)
{
	int length = snprintf(begin, size, "%s/metrics-%u-%s-", job->spool_dir, job->job_id, attempt_id);
	if (job->spool_dir[0] != '/' || length < 0 || (size_t)length >= size)
		begin[0] = '\0';
}

int wlb_run_check_step_pattern(const struct wlb_run_options *options, struct wlb_error *error)
{
	if (options->step_pattern == NULL)
		return 0;
	struct wlb_stdout *reader = wlb_stdout_open(options->step_pattern, error);
	wlb_stdout_close(reader);
	return reader != NULL ? 0 : wlb_fail_in(error, "--step-pattern");
}

/* ---- the thread ---------------------------------------------------------------------------------------------- */

static void write_record(void *context, const char *type, json_t *data, double time_s)
{
	struct wlb_run_follower *f = context;
	struct wlb_error error;
	char *text = data != NULL ? json_dumps(data, JSON_COMPACT) : NULL;
	json_decref(data);
	pthread_mutex_lock(&f->lock);
	int rc = text == NULL          ? wlb_fail(&error, "out of memory")
	         : f->reporter != NULL ? wlb_reporter_record_of(f->reporter, type, text, time_s, &error)
	                               : 0;
	if (rc != 0 && !f->is_failure_printed) {
		f->is_failure_printed = true;
		wlb_run_print("attempt %d: steps are missing in its record: %s", f->attempt, error.message);
	}
	pthread_mutex_unlock(&f->lock);
	free(text);
}

/* Returns whether files have more than was read. */
static bool poll_all(struct wlb_run_follower *f, bool is_last)
{
	double now_s = wlb_clock_unix_s();
	bool has_more = f->metrics != NULL && wlb_line_files_poll(f->metrics, &f->records, now_s, LINES_MOST);
	wlb_event_source_poll(&f->events, &f->records, now_s, is_last);
	for (int i = 0; i < OUTPUTS; i++)
		if (f->outputs[i] != NULL)
			wlb_output_file_poll(f->outputs[i], &f->records, i, now_s, is_last);
	return (f->hook != NULL && wlb_line_files_poll(f->hook, &f->records, now_s, LINES_MOST)) || has_more;
}

/* Waits until `until_ms`, or until the attempt has ended, which it returns. */
static bool wait_until(struct wlb_run_follower *f, int64_t until_ms)
{
	const struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000L};
	pthread_mutex_lock(&f->lock);
	while (!f->is_stopping && wlb_clock_left_ms(until_ms) > 0)
		pthread_cond_timedwait(&f->changed, &f->lock, &until);
	bool is_stopping = f->is_stopping;
	pthread_mutex_unlock(&f->lock);
	return is_stopping;
}

static void free_follower(struct wlb_run_follower *f)
{
	wlb_merged_records_close(&f->records);
	wlb_line_files_close(f->metrics);
	wlb_line_files_close(f->hook);
	wlb_event_source_close(&f->events);
	for (int i = 0; i < OUTPUTS; i++)
		wlb_output_file_close(f->outputs[i]);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* Reads the rest, also where the caller waits no longer: then it is read in vain, and bounded by its size. */
static void read_rest(struct wlb_run_follower *f)
{
	/* What the launcher knows of the end is late meanwhile: where no rank has the hook it is recorded at once. */
	if (f->is_hook_copied && wlb_line_files_have_bytes(f->hook))
		wlb_clock_sleep_ms(WLB_RUN_HOOK_COPY_LATE_MS);
	while (poll_all(f, true) && wlb_clock_left_ms(f->end_ms) > 0)
		wlb_clock_sleep_ms(END_PAUSE_MS);
}

static void *follow(void *argument)
{
	struct wlb_run_follower *f = argument;
	int64_t next_ms = wlb_clock_ms() + PERIOD_MS;
	while (!wait_until(f, next_ms)) {
		poll_all(f, false);
		next_ms += PERIOD_MS;
		if (next_ms < wlb_clock_ms())
			next_ms = wlb_clock_ms() + PERIOD_MS;
	}
	read_rest(f);
	pthread_mutex_lock(&f->lock);
	f->is_done = true;
	bool is_left = f->is_left;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	if (is_left)
		free_follower(f);
	return NULL;
}

/* ---- start and end ------------------------------------------------------------------------------------------- */

/* stderr is read too where it does not go to the same file: some trainers print their steps there. */
static int open_outputs(struct wlb_run_follower *f, const char *step_pattern, struct wlb_error *error)
{
	static const int fds[OUTPUTS] = {STDOUT_FILENO, STDERR_FILENO};
	struct stat about[OUTPUTS];
	bool is_same = fstat(fds[0], &about[0]) == 0 && fstat(fds[1], &about[1]) == 0 &&
	               about[0].st_ino == about[1].st_ino && about[0].st_dev == about[1].st_dev;
	for (int i = 0; i < (is_same ? 1 : OUTPUTS); i++)
		if (wlb_output_file_open(&f->outputs[i], fds[i], step_pattern, error) != 0)
			return -1;
	return 0;
}

static int open_files(struct wlb_run_follower *f, const struct wlb_run *run, const struct wlb_attempt *attempt,
                      struct wlb_error *error)
{
	char begin[PATH_MAX];
	struct wlb_run_hook hook;
	wlb_run_metrics_files(&run->job, attempt->id, begin, sizeof(begin));
	if (begin[0] != '\0' && (f->metrics = wlb_line_files_open(begin, WLB_SOURCE_LOG)) == NULL)
		return wlb_fail(error, "out of memory");
	if (!wlb_run_hook_find(run, attempt, &hook) || !wlb_run_hook_file_make(wlb_run_hook_read_from(&hook)))
		return 0;
	f->is_hook_copied = hook.copy[0] != '\0';
	f->hook = wlb_line_files_open_one(wlb_run_hook_read_from(&hook), WLB_SOURCE_HOOK);
	return f->hook != NULL ? 0 : wlb_fail(error, "out of memory");
}

static int open_sources(struct wlb_run_follower *f, const struct wlb_run *run, const struct wlb_attempt *attempt,
                        struct wlb_error *error)
{
	const char *folder = run->options.follow_tensorboard;
	if (wlb_merged_records_open(&f->records, write_record, f) != 0)
		return wlb_fail(error, "out of memory");
	if (folder == NULL)
		folder = wlb_event_folder_of(run->options.command);
	if (open_files(f, run, attempt, error) != 0 ||
	    wlb_event_source_open(&f->events, folder, wlb_clock_unix_s(), error) != 0)
		return -1;
	return open_outputs(f, run->options.step_pattern, error);
}

/* The thread blocks all signals: they are for the program's own threads. */
static int start_thread(struct wlb_run_follower *f, struct wlb_error *error)
{
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&thread, NULL, follow, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return wlb_fail(error, "no thread: %s", strerror(rc));
	pthread_detach(thread);
	return 0;
}

struct wlb_run_follower *wlb_run_follower_start(const struct wlb_run *run, const struct wlb_attempt *attempt,
                                                struct wlb_reporter *reporter)
{
	struct wlb_error error;
	pthread_condattr_t monotonic;
	if (reporter == NULL || wlb_run_train_word(run->options.command) >= 0)
		return NULL;
	struct wlb_run_follower *f = calloc(1, sizeof(*f));
	if (f == NULL)
		return NULL;
	f->reporter = reporter;
	f->attempt = attempt->number;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&f->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (open_sources(f, run, attempt, &error) == 0 && start_thread(f, &error) == 0)
		return f;
	wlb_run_print("attempt %d: its steps are not followed: %s", attempt->number, error.message);
	f->reporter = NULL;
	free_follower(f);
	return NULL;
}

static void print_left_out(const struct wlb_run_follower *f, const char *what, const struct wlb_line_counts *counts)
{
	if (counts->bad_lines + counts->long_lines + counts->files_left_out + counts->unread_bytes == 0 &&
	    counts->why[0] == '\0')
		return;
	wlb_run_print("attempt %d: of %s were left out: %" PRId64 " lines that are no records, %" PRId64 " longer than "
	              "64 KiB, %" PRId64 " files, %" PRId64 " bytes at the end%s%s",
	              f->attempt, what, counts->bad_lines, counts->long_lines, counts->files_left_out,
	              counts->unread_bytes, counts->why[0] != '\0' ? "; the first: " : "", counts->why);
}

/* Says what was left out, and removes what was read. */
static void finish_files(const struct wlb_run_follower *f, struct wlb_line_files *files, const char *what)
{
	if (files == NULL)
		return;
	const struct wlb_line_counts counts = wlb_line_files_counts(files);
	print_left_out(f, what, &counts);
	wlb_line_files_remove(files);
}

static void print_unread_events(const struct wlb_run_follower *f)
{
	if (f->events.files == NULL)
		return;
	const struct wlb_event_counts counts = wlb_event_files_counts(f->events.files);
	if (counts.files_left_out + counts.damaged + counts.ended_files + counts.unread_folders > 0)
		wlb_run_print("attempt %d: of TensorBoard's folder were left out: %d files, %" PRId64
		              " folders, %" PRId64 " damaged records, and what follows one in %" PRId64 " files",
		              f->attempt, counts.files_left_out, counts.unread_folders, counts.damaged,
		              counts.ended_files);
}

static void print_unread_output(const struct wlb_run_follower *f)
{
	int64_t bytes = 0;
	for (int i = 0; i < OUTPUTS; i++)
		if (f->outputs[i] != NULL)
			bytes += wlb_output_file_passed_bytes(f->outputs[i]);
	if (bytes > 0)
		wlb_run_print("attempt %d: %" PRId64
		              " bytes of its output were not searched for steps: they came faster "
		              "than they are read",
		              f->attempt, bytes);
}

static void finish(struct wlb_run_follower *f)
{
	const struct wlb_merge_counts merged = wlb_merge_count(f->records.merge);
	int64_t left_out = merged.names_left_out + f->records.left_out_values;
	finish_files(f, f->metrics, "WLB_METRICS_FILE");
	finish_files(f, f->hook, "the hook's lines");
	print_unread_events(f);
	print_unread_output(f);
	if (left_out > 0)
		wlb_run_print("attempt %d: %" PRId64 " values that the trainer said are not recorded: a run has %d "
		              "names of values, a record %d values, each a number",
		              f->attempt, left_out, WLB_MERGE_NAMES_MOST, WLB_FOLLOWED_VALUES_MOST);
	if (merged.steps_back > 0)
		wlb_run_print("attempt %d: its steps went back %" PRId64 " times, which the program has said",
		              f->attempt, merged.steps_back);
}

void wlb_run_follower_stop(struct wlb_run_follower *f, int limit_ms)
{
	if (f == NULL)
		return;
	int64_t until_ms = wlb_clock_ms() + limit_ms;
	const struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000L};
	pthread_mutex_lock(&f->lock);
	f->is_stopping = true;
	f->end_ms = until_ms;
	pthread_cond_broadcast(&f->changed);
	while (!f->is_done && pthread_cond_timedwait(&f->changed, &f->lock, &until) != ETIMEDOUT)
		;
	bool is_done = f->is_done;
	f->is_left = !is_done;
	if (!is_done)
		f->reporter = NULL;
	pthread_mutex_unlock(&f->lock);
	if (is_done) {
		finish(f);
		free_follower(f);
	} else {
		wlb_run_print(
			"attempt %d: the last of its steps are not recorded: their files could not be read in %d ms",
			f->attempt, limit_ms);
	}
}
