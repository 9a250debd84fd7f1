#include "coordinator/wlb/run/attempt/first_error.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/own_file.h"
#include "coordinator/wlb/run/state/print.h"

enum {
	FILE_BYTES = 65536, /* more than a traceback has */
	SCAN_MS = 500,      /* for the names of a folder with many files */
};

void wlb_run_error_files(const struct wlb_run_job *job, const char *attempt_id, char *begin, size_t size)
{
	int length = snprintf(begin, size, "%s/error-%u-%s-", job->spool_dir, job->job_id, attempt_id);
	if (job->spool_dir[0] != '/' || length < 0 || (size_t)length >= size)
		begin[0] = '\0';
}

/* Removes what the tasks have written; each run of a job removes what older ones have left (old_files.h). */
static void remove_files(const char *begin, const char *folder_path)
{
	const char *name = strrchr(begin, '/') + 1;
	int64_t until_ms = wlb_clock_ms() + SCAN_MS;
	DIR *folder = opendir(folder_path);
	struct dirent *entry;
	if (folder == NULL)
		return;
	while (wlb_clock_left_ms(until_ms) > 0 && (entry = readdir(folder)) != NULL)
		if (strncmp(entry->d_name, name, strlen(name)) == 0)
			unlinkat(dirfd(folder), entry->d_name, 0);
	closedir(folder);
}

static void read_file(const char *begin, int task, struct wlb_error_line *error)
{
	static char bytes[FILE_BYTES];
	struct wlb_error_line found;
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s%d.json", begin, task) >= (int)sizeof(path))
		return;
	int fd = wlb_own_file_open(path, O_RDONLY, NULL);
	if (fd < 0)
		return;
	ssize_t count = pread(fd, bytes, sizeof(bytes), 0);
	if (count > 0 && wlb_error_file_read(bytes, (size_t)count, &found) == 0)
		*error = found;
	close(fd);
}

/* What follows from the failure of a rank or node, whose reason is printed, says nothing more. */
static void print_error(const struct wlb_attempt *attempt)
{
	const struct wlb_error_line *error = &attempt->error;
	char rank[32] = "its ranks";
	if (!error->known || error->is_consequence)
		return;
	if (error->rank >= 0)
		snprintf(rank, sizeof(rank), "rank %d", error->rank);
	wlb_run_print("attempt %d: the first error of %s: %s%s%s%s", attempt->number, rank, error->text,
	              error->cause[0] != '\0' ? " (because of " : "", error->cause, error->cause[0] != '\0' ? ")" : "");
}

void wlb_run_find_error(const struct wlb_run *run, struct wlb_attempt *attempt, const struct wlb_output_tail *tail)
{
	static char bytes[WLB_OUTPUT_TAIL_BYTES];
	char begin[PATH_MAX];
	struct wlb_error_line *error = &attempt->error;
	if (attempt->exit_code == 0 || run->job.off)
		return;
	wlb_run_error_files(&run->job, attempt->id, begin, sizeof(begin));
	if (attempt->ended_by != WLB_ENDED_BY_CANCEL && !attempt->stopped && !attempt->is_refused) {
		size_t count = wlb_output_tail_copy(tail, bytes, sizeof(bytes));
		wlb_error_line_find(bytes, count, error);
		if ((!error->known || error->is_consequence) && attempt->first_exit.known && begin[0] != '\0')
			read_file(begin, attempt->first_exit.rank, error);
		print_error(attempt);
		/* For the record: it stands in the output shortly before. What a signal has killed has written nothing
		 * of it. */
		if (!error->known && attempt->first_exit.known && attempt->first_exit.signal == 0)
			wlb_error_line_last(bytes, count, error);
	}
	if (begin[0] != '\0')
		remove_files(begin, run->job.spool_dir);
}
