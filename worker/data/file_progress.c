#include "worker/data/file_progress.h"

#include <stdio.h>

#include "common/seconds.h"

static _Thread_local struct wlb_file_progress *in_use;

void wlb_file_progress_init(struct wlb_file_progress *progress)
{
	pthread_mutex_init(&progress->lock, NULL);
	progress->operation = NULL;
	progress->read_s = progress->reading_s = 0.0;
}

void wlb_file_progress_destroy(struct wlb_file_progress *progress)
{
	pthread_mutex_destroy(&progress->lock);
}

void wlb_file_progress_use(struct wlb_file_progress *progress)
{
	in_use = progress;
}

static void set(const char *operation, const char *path)
{
	struct wlb_file_progress *progress = in_use;
	if (progress == NULL)
		return;
	pthread_mutex_lock(&progress->lock);
	progress->reported_s = wlb_now_s();
	progress->operation = operation;
	snprintf(progress->path, sizeof(progress->path), "%s", path);
	pthread_mutex_unlock(&progress->lock);
}

void wlb_file_report(const char *operation, const char *path)
{
	set(operation, path);
}

void wlb_file_report_end(void)
{
	set(NULL, "");
}

void wlb_file_read_begins(void)
{
	struct wlb_file_progress *progress = in_use;
	if (progress == NULL)
		return;
	pthread_mutex_lock(&progress->lock);
	progress->reading_s = wlb_now_s();
	pthread_mutex_unlock(&progress->lock);
}

/* Under the lock. */
static double read_so_far_s(const struct wlb_file_progress *progress)
{
	return progress->read_s + (progress->reading_s > 0.0 ? wlb_now_s() - progress->reading_s : 0.0);
}

void wlb_file_read_ends(void)
{
	struct wlb_file_progress *progress = in_use;
	if (progress == NULL)
		return;
	pthread_mutex_lock(&progress->lock);
	progress->read_s = read_so_far_s(progress);
	progress->reading_s = 0.0;
	pthread_mutex_unlock(&progress->lock);
}

double wlb_file_progress_read_s(struct wlb_file_progress *progress)
{
	pthread_mutex_lock(&progress->lock);
	double read_s = read_so_far_s(progress);
	pthread_mutex_unlock(&progress->lock);
	return read_s;
}

int wlb_file_progress_check(struct wlb_file_progress *progress, double limit_s, struct wlb_error *error)
{
	pthread_mutex_lock(&progress->lock);
	double waited_s = progress->operation != NULL ? wlb_now_s() - progress->reported_s : 0.0;
	int rc = 0;
	if (waited_s > limit_s)
		rc = wlb_fail(error,
		              "%.700s: %s has made no progress for %.1f s, more than --storage-timeout-minutes %g: "
		              "check its file system, then start again",
		              progress->path, progress->operation, waited_s, limit_s / 60.0);
	pthread_mutex_unlock(&progress->lock);
	return rc;
}
