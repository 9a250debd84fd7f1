#include "coordinator/wlb/run/state/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/own_file.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/progress.h"

enum {
	BYTES_MAX = 1024 * 1024,
	LOCK_MS = 5000, /* for another `wlb run` of the job that changes the journal, and may be stopped meanwhile */
	LOCK_PAUSE_MS = 10,
	CHANGE_BYTE = 0,       /* byte N is that of run number N */
	NUMBER_MAX = 1 << 20,  /* of nodes, tasks and growths, in a journal that can be believed */
	TIME_MAX_S = 24 * 3600 /* the same of a save or a step */
};

/* ---- locks ------------------------------------------------------------------------------------------------------ */

/* count 0: all bytes from `first` on. */
static struct flock bytes(short type, off_t first, off_t count)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
}

static bool is_locked(int fd, off_t first, off_t count)
{
	struct flock lock = bytes(F_WRLCK, first, count);
	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static void unlock(int fd, off_t first, off_t count)
{
	struct flock lock = bytes(F_UNLCK, first, count);
	if (fd >= 0)
		fcntl(fd, F_OFD_SETLK, &lock);
}

/* A file system without locks counts as locked. */
static bool lock_for_change(struct wlb_run_journal *journal)
{
	int64_t until_ms = wlb_clock_ms() + (journal->is_held ? 0 : LOCK_MS);
	struct flock lock = bytes(F_WRLCK, CHANGE_BYTE, 1);
	journal->is_held = false;
	while (fcntl(journal->fd, F_OFD_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES)) {
		journal->is_held = wlb_clock_left_ms(until_ms) == 0;
		if (journal->is_held)
			break;
		wlb_clock_sleep_ms(LOCK_PAUSE_MS);
	}
	return !journal->is_held;
}

int wlb_run_journal_work_as(struct wlb_run *run, int number, struct wlb_error *error)
{
	struct wlb_run_journal *journal = &run->journal;
	struct flock lock = bytes(F_RDLCK, number, 1);
	int before = journal->number;
	journal->number = number;
	if (journal->fd >= 0 && fcntl(journal->fd, F_OFD_SETLK, &lock) != 0)
		return wlb_fail(error, "file %s: cannot be locked: %s", journal->path, strerror(errno));
	if (before != 0 && before != number)
		unlock(journal->fd, before, 1);
	return 0;
}

bool wlb_run_journal_works(const struct wlb_run *run, int number)
{
	return is_locked(run->journal.fd, number, 1);
}

bool wlb_run_journal_others_work(const struct wlb_run *run)
{
	return is_locked(run->journal.fd, CHANGE_BYTE + 1, 0);
}

void wlb_run_journal_leave(const struct wlb_run *run)
{
	unlock(run->journal.fd, CHANGE_BYTE + 1, 0);
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

int wlb_run_journal_fail(const struct wlb_error *cause, struct wlb_error *error)
{
	return wlb_fail(error,
	                "%.700s; where the job is requeued and has several `wlb run`, this one may begin a new run, "
	                "and ends the others: set WLB_SPOOL_DIR to a directory where it can be written",
	                cause->message);
}

int wlb_run_journal_open(struct wlb_run *run, struct wlb_error *error)
{
	struct wlb_run_journal *journal = &run->journal;
	struct wlb_error cause;
	snprintf(journal->path, sizeof(journal->path), "%s/%" PRIu32 ".json", run->job.spool_dir, run->job.job_id);
	journal->number = 0;
	journal->fd = wlb_own_file_open(journal->path, O_RDWR | O_CREAT, &cause);
	return journal->fd >= 0 ? 0 : wlb_run_journal_fail(&cause, error);
}

void wlb_run_journal_close(struct wlb_run *run)
{
	if (run->journal.fd >= 0)
		close(run->journal.fd);
	run->journal.fd = -1;
}

static bool is_count(const json_t *content, const char *member)
{
	const json_t *value = json_object_get(content, member);
	return value == NULL || (json_is_integer(value) && json_integer_value(value) >= 0);
}

static bool is_sound(const json_t *content)
{
	const json_t *runs = json_object_get(content, "runs");
	size_t count = json_array_size(runs);
	bool is_sound = json_is_object(content) && is_count(content, "submit_time") &&
	                is_count(content, "restart_count") && is_count(content, "highest") &&
	                (runs == NULL || json_is_array(runs)) && count <= WLB_RUN_JOURNAL_RUNS_MAX &&
	                (count == WLB_RUN_JOURNAL_RUNS_MAX ||
	                 json_integer_value(json_object_get(content, "highest")) <= (json_int_t)count);
	for (size_t i = 0; is_sound && i < count; i++)
		is_sound = json_is_string(json_object_get(json_array_get(runs, i), "key"));
	return is_sound;
}

/* What follows the value is left from a write that was interrupted. */
static json_t *load(int fd)
{
	char *text = malloc(BYTES_MAX);
	ssize_t length = text != NULL ? pread(fd, text, BYTES_MAX, 0) : -1;
	json_t *content = length > 0 ? json_loadb(text, (size_t)length, JSON_DISABLE_EOF_CHECK, NULL) : json_object();
	free(text);
	if (length < 0 || is_sound(content))
		return length < 0 ? NULL : content;
	json_decref(content);
	return json_object();
}

/* A submit time of 0 is not known: Slurm did not answer. */
static bool is_same_start(const struct wlb_run_job *job, int64_t submit_time, int64_t restart_count)
{
	return restart_count == job->restart_count &&
	       (submit_time == job->submit_time || submit_time == 0 || job->submit_time == 0);
}

/* In a new start of the job no number is in use but those that runs with other journals have. */
static void forget_uses(json_t *content)
{
	json_t *runs = json_object_get(content, "runs"), *entry;
	size_t i;
	json_array_foreach(runs, i, entry)
	{
		if (strcmp(json_string_value(json_object_get(entry, "key")), WLB_RUN_JOURNAL_ELSEWHERE) != 0)
			json_object_del(entry, "is_used");
	}
	json_object_del(content, "highest");
}

/* Slurm gives a job that it requeues another submit time; job ids are reused. */
static void begin_start(const struct wlb_run_job *job, json_t *content)
{
	int64_t restart_count = json_integer_value(json_object_get(content, "restart_count"));
	bool is_same = is_same_start(job, json_integer_value(json_object_get(content, "submit_time")), restart_count);
	if (!is_same && (job->restart_count == 0 || restart_count > job->restart_count))
		json_object_clear(content);
	else if (!is_same)
		forget_uses(content);
	if (!is_same || job->submit_time != 0)
		json_object_set_new(content, "submit_time", json_integer(job->submit_time));
	json_object_set_new(content, "restart_count", json_integer(job->restart_count));
	if (json_object_get(content, "runs") == NULL)
		json_object_set_new(content, "runs", json_array());
}

static int fail_io(const struct wlb_run *run, const char *why, struct wlb_error *error)
{
	return wlb_fail(error, "file %s: cannot be written: %s", run->journal.path, why);
}

json_t *wlb_run_journal_begin(struct wlb_run *run, struct wlb_error *error)
{
	int fd = run->journal.fd;
	if (fd < 0 || !lock_for_change(&run->journal)) {
		fail_io(run, fd < 0 ? "it is not open" : "another process locks it for seconds", error);
		return NULL;
	}
	json_t *content = load(fd);
	if (content == NULL) {
		fail_io(run, strerror(errno), error);
		unlock(fd, CHANGE_BYTE, 1);
		return NULL;
	}
	begin_start(&run->job, content);
	return content;
}

void wlb_run_journal_release(struct wlb_run *run, json_t *content)
{
	json_decref(content);
	unlock(run->journal.fd, CHANGE_BYTE, 1);
}

/* The space is reserved before the old content is replaced, and the file is cut last: a full disk changes nothing. */
static int rewrite(int fd, const char *text, size_t length)
{
	int why = posix_fallocate(fd, 0, (off_t)length);
	if (why != 0) {
		errno = why;
		return -1;
	}
	if (wlb_pwrite_all(fd, text, length, 0) != 0 || ftruncate(fd, (off_t)length) != 0)
		return -1;
	return fdatasync(fd);
}

int wlb_run_journal_end(struct wlb_run *run, json_t *content, struct wlb_error *error)
{
	char *text = json_dumps(content, JSON_COMPACT | JSON_REAL_PRECISION(9));
	int rc = 0;
	if (text == NULL)
		rc = fail_io(run, "out of memory", error);
	else if (rewrite(run->journal.fd, text, strlen(text)) != 0)
		rc = fail_io(run, strerror(errno), error);
	free(text);
	wlb_run_journal_release(run, content);
	return rc;
}

/* ---- what is kept ----------------------------------------------------------------------------------------------- */

/* Returns a copy of the content; {} where there is none. */
static json_t *read_content(struct wlb_run *run)
{
	json_t *content = wlb_run_journal_begin(run, NULL);
	if (content == NULL)
		return json_object();
	json_incref(content);
	wlb_run_journal_release(run, content);
	return content;
}

/* Returns the entry of this run; NULL: it has none. */
static json_t *entry_of(const struct wlb_run *run, const json_t *content)
{
	int number = run->journal.number;
	return number > 0 ? json_array_get(json_object_get(content, "runs"), (size_t)number - 1) : NULL;
}

/* Replaces members of the job, or of this run; either may be NULL, and both are released. That the journal is not open
 * was said when it was opened. */
static int put(struct wlb_run *run, json_t *of_job, json_t *of_run, struct wlb_error *error)
{
	json_t *content = run->journal.fd >= 0 ? wlb_run_journal_begin(run, error) : NULL;
	int rc = run->journal.fd >= 0 ? -1 : 0;
	if (content != NULL) {
		json_object_update(content, of_job);
		json_object_update(entry_of(run, content), of_run);
		rc = wlb_run_journal_end(run, content, error);
	}
	json_decref(of_job);
	json_decref(of_run);
	return rc;
}

/* Returns a count that can be believed; else -1. */
static int number_in(const json_t *object, const char *member)
{
	const json_t *value = json_object_get(object, member);
	json_int_t number = json_integer_value(value);
	return json_is_integer(value) && number >= 0 && number <= NUMBER_MAX ? (int)number : -1;
}

/* Returns a time that can be believed; else -1. */
static double seconds_in(const json_t *object, const char *member)
{
	const json_t *value = json_object_get(object, member);
	double time_s = json_number_value(value);
	return json_is_number(value) && time_s >= 0.0 && time_s <= TIME_MAX_S ? time_s : -1.0;
}

int wlb_run_journal_read_tasks(struct wlb_run *run)
{
	json_t *content = read_content(run);
	int per_node = number_in(content, "tasks_per_node");
	json_decref(content);
	return per_node > 0 ? per_node : 0;
}

void wlb_run_journal_write_tasks(struct wlb_run *run, int per_node)
{
	struct wlb_error error;
	if (put(run, json_pack("{s:i}", "tasks_per_node", per_node), NULL, &error) != 0)
		wlb_run_print("requeued on fewer nodes, this job will not know how many tasks each has: %s",
		              error.message);
}

void wlb_run_journal_read_growth(struct wlb_run *run)
{
	json_t *content = read_content(run);
	const json_t *entry = entry_of(run, content);
	int first_nodes = number_in(content, "first_nodes");
	int growths = number_in(entry, "growths_without_nodes"), before = number_in(entry, "nodes_before");
	if (first_nodes > run->grow.first_nodes)
		run->grow.first_nodes = first_nodes;
	if (growths >= 0 && before >= 0) {
		run->grow.growths_without_nodes = growths;
		run->grow.nodes_before = before;
	}
	json_decref(content);
}

void wlb_run_journal_write_growth(struct wlb_run *run)
{
	const struct wlb_run_grow *grow = &run->grow;
	struct wlb_error error;
	json_t *of_run = json_pack("{s:i, s:i}", "growths_without_nodes", grow->growths_without_nodes, "nodes_before",
	                           grow->nodes_before);
	if (put(run, json_pack("{s:i}", "first_nodes", grow->first_nodes), of_run, &error) != 0)
		wlb_run_print("the next wlb run of this job will not know how often the run has grown: %s",
		              error.message);
}

void wlb_run_journal_read_held(struct wlb_run *run)
{
	json_t *content = read_content(run);
	const json_t *entry = entry_of(run, content);
	const struct wlb_run_split held = {.tp = number_in(entry, "held_tp"),
	                                   .cp = number_in(entry, "held_cp"),
	                                   .pp = number_in(entry, "held_pp"),
	                                   .interleave = number_in(entry, "held_interleave")};
	if (held.tp > 0 && held.cp > 0 && held.pp > 0 && held.interleave > 0)
		run->held = held;
	json_decref(content);
}

void wlb_run_journal_write_held(struct wlb_run *run)
{
	const struct wlb_run_split *held = &run->held;
	struct wlb_error error;
	json_t *of_run = json_pack("{s:i, s:i, s:i, s:i}", "held_tp", held->tp, "held_cp", held->cp, "held_pp",
	                           held->pp, "held_interleave", held->interleave);
	if (put(run, NULL, of_run, &error) != 0)
		wlb_run_print("requeued, this job will not know in which layout it has saved: %s", error.message);
}

void wlb_run_journal_read_times(struct wlb_run *run)
{
	json_t *content = read_content(run);
	const json_t *entry = entry_of(run, content);
	double before_s = seconds_in(entry, "save_before_s"), block_s = seconds_in(entry, "save_block_s");
	double step_s = seconds_in(entry, "step_s");
	int count = number_in(entry, "save_count");
	if (before_s >= 0.0 && block_s >= 0.0 && count >= 0 && step_s >= 0.0) {
		run->progress.saves =
			(struct wlb_run_longest){.before_s = before_s, .block_s = block_s, .count = count};
		run->progress.steps = (struct wlb_run_longest){.before_s = step_s};
	}
	json_decref(content);
}

void wlb_run_journal_write_times(struct wlb_run *run)
{
	const struct wlb_run_longest *saves = &run->progress.saves;
	struct wlb_error error;
	json_t *of_run =
		json_pack("{s:f, s:f, s:i, s:f}", "save_before_s", saves->before_s, "save_block_s", saves->block_s,
	                  "save_count", saves->count, "step_s", wlb_run_longest_s(&run->progress.steps));
	if (put(run, NULL, of_run, &error) != 0)
		wlb_run_print("the next wlb run of this job will not know how long saves take: %s", error.message);
}
