#include "worker/train/file_work.h"

#include <math.h>
#include <stdlib.h>

#include "worker/data/file_thread.h"
#include "worker/train/agree.h"

/* The longest time between two collectives of the waiting ranks. */
static const double LONGEST_ROUND_S = 1.0;

struct file_work {
	struct wlb_file_thread thread;
	double storage_timeout_s;
	wlb_file_function *function;
	void *context;
	int rc;
	struct wlb_error error;
};

static void run(void *argument)
{
	struct file_work *work = argument;
	work->rc = work->function(work->context, &work->error);
}

static struct file_work *start(const struct wlb_file_waiting *waiting, wlb_file_function *function, void *context,
                               struct wlb_error *error)
{
	struct file_work *work = calloc(1, sizeof(*work));
	if (work == NULL) {
		wlb_fail(error, "out of memory for a thread that works with files");
		return NULL;
	}
	work->storage_timeout_s = waiting->storage_timeout_s;
	work->function = function;
	work->context = context;
	if (wlb_file_thread_start(&work->thread, "file work", run, work, error) == 0)
		return work;
	free(work);
	return NULL;
}

int wlb_await_files(const struct wlb_file_waiting *waiting, wlb_file_await *await, void *context,
                    struct wlb_error *error)
{
	double round_s = fmin(LONGEST_ROUND_S, waiting->collective_timeout_s / 4.0), working = 0.0;
	int ended = 0;
	do {
		if (!ended)
			ended = await(context, round_s, error);
		if (ended < 0)
			return -1;
		working = ended ? 0.0 : 1.0;
		if (wlb_comm_all_reduce_double(waiting->world, &working, 1, WLB_MAX, error) < 0)
			return -1;
	} while (working > 0.0);
	return 0;
}

/* A wlb_file_await. The work is NULL on a rank that has none. */
static int await_work(void *context, double seconds, struct wlb_error *error)
{
	struct file_work *work = context;
	if (work == NULL || wlb_file_thread_join_within(&work->thread, seconds))
		return 1;
	return wlb_file_progress_check(&work->thread.progress, work->storage_timeout_s, error);
}

int wlb_work_with_files(const struct wlb_file_waiting *waiting, wlb_file_function *function, void *context,
                        struct wlb_error *error)
{
	struct file_work *work = function != NULL ? start(waiting, function, context, error) : NULL;
	int rc = function != NULL && work == NULL ? -1 : 0;
	if (wlb_await_files(waiting, await_work, work, error) < 0)
		return WLB_FAILED_HERE;
	if (work != NULL) {
		rc = work->rc;
		if (rc < 0)
			*error = work->error;
		free(work);
	}
	return wlb_agree(waiting->world, rc, error);
}
