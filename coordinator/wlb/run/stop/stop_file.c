#include "coordinator/wlb/run/stop/stop_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/own_file.h"

static const char order[] = "stop\n";
static const char of_step[] = ".step";

void wlb_run_stop_file_path(const struct wlb_run_job *job, const char *attempt_id, char *path, size_t size)
{
	int length = snprintf(path, size, "%s/stop-%u-%s", job->spool_dir, job->job_id, attempt_id);
	if (job->spool_dir[0] != '/' || length < 0 || (size_t)length + sizeof(of_step) > size)
		path[0] = '\0';
}

/* Returns a descriptor, or -1. */
static int open_file(const struct wlb_run_job *job, const char *attempt_id, int flags, struct wlb_error *error)
{
	char path[PATH_MAX];
	wlb_run_stop_file_path(job, attempt_id, path, sizeof(path));
	if (path[0] == '\0')
		return wlb_fail(error, "%s/stop-%u-...: not an absolute path of %d bytes at most", job->spool_dir,
		                job->job_id, PATH_MAX - 1);
	return wlb_own_file_open(path, flags, error);
}

int wlb_run_stop_file_make(const struct wlb_run_job *job, const char *attempt_id, struct wlb_error *error)
{
	int fd = open_file(job, attempt_id, O_WRONLY | O_CREAT, error);
	if (fd >= 0)
		close(fd);
	return fd >= 0 ? 0 : -1;
}

bool wlb_run_stop_file_is_read(const struct wlb_run_job *job, const char *attempt_id)
{
	char path[PATH_MAX];
	struct stat about;
	wlb_run_stop_file_path(job, attempt_id, path, sizeof(path));
	if (path[0] == '\0')
		return false;
	strcat(path, of_step);
	return lstat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid();
}

int wlb_run_stop_file_ask(const struct wlb_run_job *job, const char *attempt_id, struct wlb_error *error)
{
	const ssize_t length = sizeof(order) - 1;
	int fd = open_file(job, attempt_id, O_WRONLY | O_CREAT, error);
	if (fd < 0)
		return -1;
	bool is_written = write(fd, order, (size_t)length) == length;
	int rc = is_written ? 0 : wlb_fail(error, "the file of WLB_STOP_FILE cannot be written: %s", strerror(errno));
	/* A network file system says here that it has not written. */
	if (close(fd) != 0 && rc == 0)
		rc = wlb_fail(error, "the file of WLB_STOP_FILE cannot be written: %s", strerror(errno));
	return rc;
}

void wlb_run_stop_file_remove(const struct wlb_run_job *job, const char *attempt_id)
{
	char path[PATH_MAX];
	wlb_run_stop_file_path(job, attempt_id, path, sizeof(path));
	if (path[0] == '\0')
		return;
	unlink(path);
	strcat(path, of_step);
	unlink(path);
}
