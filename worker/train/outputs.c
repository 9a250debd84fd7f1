#include "worker/train/outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "worker/data/file_progress.h"
#include "worker/data/input.h"

/* Not EROFS: the system mounts a file system read-only when its disk fails. */
static int kind_of_failure(int cause)
{
	switch (cause) {
	case EACCES:
	case EPERM:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case ENOENT:
	case ENOTDIR:
		return -1;
	default:
		return WLB_UNREADABLE;
	}
}

static int make_save_folder(const char *save, struct wlb_error *error)
{
	wlb_file_report("creating", save);
	if (wlb_dir_make(save, 0777, error) < 0) {
		int kind = kind_of_failure(errno);
		wlb_fail_in(error, "--save");
		return kind;
	}
	if (access(save, W_OK | X_OK) == 0)
		return 0;
	int kind = kind_of_failure(errno);
	wlb_fail(error, "--save %.500s: it cannot be written: %s", save, strerror(errno));
	return kind;
}

/* Whether the run's start before this one is over: the coordinator has decided so, or Slurm has requeued the job. */
static int follows(void)
{
	const char *restarts = getenv("SLURM_RESTART_COUNT");
	return getenv("WLB_ATTEMPT_ID") != NULL || (restarts != NULL && atoi(restarts) > 0);
}

/* Waits for 10 s for an attempt of the same run that is over, and for two minutes for another run. */
static int lock_save_folder(const char *save, const char *node, struct wlb_save_lock *lock, struct wlb_error *error)
{
	const struct wlb_save_claim claim = {
		.run = getenv("WLB_RUN_ID"),
		.node = node,
		.follows = follows(),
		.former_s = 10.0,
		.other_s = 120.0,
	};
	return wlb_save_lock_take(lock, save, &claim, error);
}

int wlb_outputs_open(const char *save, const char *node, const char *metrics_file, struct wlb_save_lock *lock,
                     struct wlb_metrics **metrics, struct wlb_error *error)
{
	int rc = save != NULL ? make_save_folder(save, error) : 0;
	if (rc == 0 && save != NULL)
		rc = lock_save_folder(save, node, lock, error);
	if (rc != 0 || metrics_file == NULL)
		return rc;
	wlb_file_report("opening", metrics_file);
	*metrics = wlb_metrics_open(metrics_file, error);
	return *metrics != NULL ? 0 : kind_of_failure(errno);
}
