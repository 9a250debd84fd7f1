#include "coordinator/wlb/run/job_file.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/file.h"

enum { PATH_BYTES = PATH_MAX + 96 };

static void name_file(const struct wlb_run *run, const char *name, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s/%.80s", run->job.spool_dir, name);
}

bool wlb_run_job_file_read(const struct wlb_run *run, const char *name, char text[WLB_RUN_JOB_FILE_BYTES])
{
	char path[PATH_BYTES], *line = NULL;
	int64_t submit_time = 0;
	int length = 0;
	text[0] = '\0';
	name_file(run, name, path);
	if (wlb_file_read(path, WLB_RUN_JOB_FILE_BYTES, &line, NULL, NULL) != 0)
		return false;
	bool is_ours = sscanf(line, "%" SCNd64 " %n", &submit_time, &length) == 1 && length > 0;
	/* Slurm gives a job that it requeues another submit time; job ids are reused. */
	is_ours = is_ours && (submit_time == run->job.submit_time || run->job.restart_count > 0);
	if (is_ours)
		snprintf(text, WLB_RUN_JOB_FILE_BYTES, "%s", line + length);
	free(line);
	return is_ours;
}

int wlb_run_job_file_write(const struct wlb_run *run, const char *name, const char *text, struct wlb_error *error)
{
	char path[PATH_BYTES], line[WLB_RUN_JOB_FILE_BYTES];
	name_file(run, name, path);
	int length = snprintf(line, sizeof(line), "%" PRId64 " %s\n", run->job.submit_time, text);
	if (length >= (int)sizeof(line))
		return wlb_fail(error, "file %s: a line of %d bytes is too long", path, length);
	return wlb_file_write(path, line, (size_t)length, 0600, error);
}
