#include "coordinator/wlb/run/launches.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/own_file.h"
#include "libwlb/hash.h"

enum {
	RUNS_MOST = 1024, /* of a job, whose commands are kept; the others are numbered in the order of the starts */
	LINE_BYTES = 64,
	LOCK_MS = 5000, /* for other `wlb run` of the job that count themselves, or one that is stopped meanwhile */
	TEXT_BYTES = LINE_BYTES * (RUNS_MOST + 1),
	ELSEWHERE = 1, /* in place of a command: another directory has this number of the job, in each start */
};

struct launches {
	int64_t submit_time; /* 0: not known */
	unsigned restart_count;
	int highest; /* number in this start */
	int count;   /* of the runs that follow, which have the numbers from 1 on */
	struct {
		uint64_t command; /* 0: not known */
		bool is_used;     /* in this start */
	} runs[RUNS_MOST];
};

/* With its NUL: the words of two commands can be the same text when they are joined. */
static uint64_t add_text(uint64_t digest, const char *text)
{
	return wlb_hash_bytes(digest, text, strlen(text) + 1);
}

static uint64_t digest_of(char *const *command)
{
	char here[PATH_MAX];
	uint64_t digest = add_text(WLB_HASH_OF_NOTHING, getcwd(here, sizeof(here)) != NULL ? here : "");
	for (int i = 0; command[i] != NULL; i++)
		digest = add_text(digest, command[i]);
	return digest > ELSEWHERE ? digest : ELSEWHERE + 1;
}

static void parse(const char *text, struct launches *all)
{
	int length = 0, is_used;
	uint64_t command;
	*all = (struct launches){0};
	if (sscanf(text, "%" SCNd64 " %u %d\n%n", &all->submit_time, &all->restart_count, &all->highest, &length) < 3 ||
	    all->highest < 0) {
		*all = (struct launches){0};
		return;
	}
	for (text += length;
	     all->count < RUNS_MOST && sscanf(text, "%16" SCNx64 " %1d\n%n", &command, &is_used, &length) == 2;
	     text += length) {
		all->runs[all->count].command = command;
		all->runs[all->count++].is_used = is_used != 0;
	}
	while (all->count < all->highest && all->count < RUNS_MOST)
		all->runs[all->count++].is_used = true;
}

/* A time of 0 is not known: Slurm did not answer. */
static bool is_same_start(const struct wlb_run_job *job, const struct launches *all)
{
	return all->restart_count == job->restart_count &&
	       (all->submit_time == job->submit_time || all->submit_time == 0 || job->submit_time == 0);
}

/* Slurm gives a job that it requeues another submit time; job ids are reused. */
static void begin_start(const struct wlb_run_job *job, struct launches *all)
{
	bool is_same = is_same_start(job, all);
	if (!is_same && (job->restart_count == 0 || all->restart_count > job->restart_count))
		all->count = 0;
	for (int i = 0; !is_same && i < all->count; i++)
		all->runs[i].is_used = all->runs[i].command == ELSEWHERE;
	if (!is_same)
		all->highest = 0;
	if (!is_same || job->submit_time != 0)
		all->submit_time = job->submit_time;
	all->restart_count = job->restart_count;
}

/* Returns the index of the run that goes on; all->count or more for one that begins. */
static int choose(const struct launches *all, uint64_t command)
{
	int used = 0;
	for (int i = 0; i < all->count; i++) {
		if (all->runs[i].command == command && !all->runs[i].is_used)
			return i;
		used += all->runs[i].is_used;
	}
	if (used < all->count && !all->runs[used].is_used)
		return used;
	return all->highest > all->count ? all->highest : all->count;
}

static int take(struct launches *all, uint64_t command)
{
	int index = choose(all, command);
	if (index < RUNS_MOST) {
		all->runs[index].command = command;
		all->runs[index].is_used = true;
		if (index == all->count)
			all->count++;
	}
	if (index >= all->highest)
		all->highest = index + 1;
	return index + 1;
}

/* The run that took the number `counted` has the number `given`, unless another of this directory has it. */
static void move(struct launches *all, uint64_t command, int counted, int given)
{
	if (given <= all->count && all->runs[given - 1].is_used)
		return;
	while (all->count < given && all->count < RUNS_MOST) {
		all->runs[all->count].command = ELSEWHERE;
		all->runs[all->count++].is_used = true;
	}
	if (counted <= all->count && all->runs[counted - 1].command == command)
		all->runs[counted - 1].command = ELSEWHERE;
	if (given <= all->count) {
		all->runs[given - 1].command = command;
		all->runs[given - 1].is_used = true;
	}
	if (all->highest < given)
		all->highest = given;
}

/* The old content is replaced before the file is cut: a full disk leaves the numbers that are in use. */
static int rewrite(int fd, const struct launches *all)
{
	char text[TEXT_BYTES];
	int used =
		snprintf(text, sizeof(text), "%" PRId64 " %u %d\n", all->submit_time, all->restart_count, all->highest);
	for (int i = 0; i < all->count; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%016" PRIx64 " %d\n", all->runs[i].command,
		                 all->runs[i].is_used);
	return wlb_pwrite_all(fd, text, (size_t)used, 0) == 0 ? ftruncate(fd, used) : -1;
}

static int fail_io(const char *path, const char *why, struct wlb_error *error)
{
	return wlb_fail(error, "file %s: cannot be written: %s", path, why);
}

/* `given`: the number that the run is to have; 0: it is counted. */
static int count_launch(const struct wlb_run_job *job, const char *path, int fd, uint64_t command, int given,
                        int *launch, struct wlb_error *error)
{
	char text[TEXT_BYTES];
	struct launches all;
	if (!wlb_own_file_lock(fd, LOCK_MS))
		return fail_io(path, "another process locks it for seconds", error);
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
	if (length < 0)
		return fail_io(path, strerror(errno), error);
	text[length] = '\0';
	parse(text, &all);
	begin_start(job, &all);
	if (given == 0)
		*launch = take(&all, command);
	else
		move(&all, command, *launch, given);
	return rewrite(fd, &all) == 0 ? 0 : fail_io(path, strerror(errno), error);
}

/* `given`: the number that the run is to have; 0: it is counted. */
static int change_file(const struct wlb_run_job *job, char *const *command, int given, int *launch,
                       struct wlb_error *error)
{
	char path[PATH_MAX + 32];
	struct wlb_error cause;
	snprintf(path, sizeof(path), "%s/%u.launches", job->spool_dir, job->job_id);
	int fd = wlb_own_file_open(path, O_RDWR | O_CREAT, &cause);
	int rc = fd >= 0 ? count_launch(job, path, fd, digest_of(command), given, launch, &cause) : -1;
	if (rc != 0)
		wlb_fail(error,
		         "%.700s; where the job is requeued and has several `wlb run`, this one may begin a new run: "
		         "set WLB_SPOOL_DIR to a directory where it can be written",
		         cause.message);
	if (fd >= 0)
		close(fd);
	return rc;
}

int wlb_run_launches_count(const struct wlb_run_job *job, char *const *command, int *launch, struct wlb_error *error)
{
	*launch = 1;
	return change_file(job, command, 0, launch, error);
}

int wlb_run_launches_move(const struct wlb_run_job *job, char *const *command, int counted, int given,
                          struct wlb_error *error)
{
	return change_file(job, command, given, &counted, error);
}
