#include "worker/train/outputs.h"

#include <errno.h>
#include <stdio.h>
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

int wlb_trace_folder_name(const struct wlb_train_options *options, const char *attempt_id, char folder[PATH_MAX],
                          struct wlb_error *error)
{
	const char *slash = attempt_id[0] != '\0' ? "/" : "";
	if (snprintf(folder, PATH_MAX, "%s%s%s", options->trace_dir, slash, attempt_id) < PATH_MAX)
		return 0;
	errno = ENAMETOOLONG;
	return wlb_fail(error, "%.200s: the path is too long", options->trace_dir);
}

/* So that a wrong path is found before the run. */
static int make_trace_folder(const struct wlb_train_options *options, const char *attempt_id, struct wlb_error *error)
{
	char folder[PATH_MAX];
	int rc = wlb_trace_folder_name(options, attempt_id, folder, error);
	if (rc == 0) {
		wlb_file_report("creating", folder);
		rc = wlb_dir_make(folder, 0777, error);
	}
	if (rc == 0)
		return 0;
	int kind = kind_of_failure(errno);
	wlb_fail_in(error, "--trace-dir");
	return kind;
}

int wlb_outputs_open(const struct wlb_train_options *options, const char *attempt_id, const char *node,
                     struct wlb_save_lock *lock, struct wlb_outputs *outputs, struct wlb_error *error)
{
	int rc = options->save != NULL ? make_save_folder(options->save, error) : 0;
	if (rc == 0 && options->save != NULL)
		rc = lock_save_folder(options->save, node, lock, error);
	if (rc == 0 && options->metrics_file != NULL) {
		wlb_file_report("opening", options->metrics_file);
		outputs->metrics = wlb_metrics_open(options->metrics_file, error);
		rc = outputs->metrics != NULL ? 0 : kind_of_failure(errno);
	}
	if (rc == 0 && options->tensorboard_dir != NULL) {
		outputs->tensorboard = wlb_tensorboard_open(options->tensorboard_dir, error);
		rc = outputs->tensorboard != NULL ? 0 : kind_of_failure(errno);
	}
	if (rc == 0 && options->trace_dir != NULL)
		rc = make_trace_folder(options, attempt_id, error);
	return rc;
}

void wlb_outputs_close(struct wlb_outputs *outputs)
{
	wlb_metrics_close(outputs->metrics);
	wlb_tensorboard_close(outputs->tensorboard);
}
