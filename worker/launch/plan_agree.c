#include "worker/launch/plan_agree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/seconds.h"
#include "worker/data/file_thread.h"
#include "worker/data/input.h"

static const double CHECK_EVERY_S = 0.2;

/* The time between two fences while rank 0 makes the plan. It doubles, since the PMIx servers keep the data of every
 * fence; the longest is far below the limits of a fence, 120 s of ours and 300 s of Slurm's (PMIxTimeout). */
static const double FIRST_ROUND_S = 1.0, LONGEST_ROUND_S = 30.0;

struct plan_work {
	struct wlb_file_thread thread;
	const struct wlb_launch *launch;
	const struct wlb_train_options *options;
	struct wlb_train_plan plan;
};

static void end_without(struct wlb_train_plan *plan, enum wlb_plan_state state, const char *reason)
{
	*plan = (struct wlb_train_plan){.state = state};
	wlb_text_show(plan->reason, sizeof(plan->reason), reason);
}

static void make(void *argument)
{
	struct plan_work *work = argument;
	struct wlb_error error = {0};
	int rc = wlb_train_plan_make(work->launch, work->options, &work->plan, &error);
	if (rc < 0)
		end_without(&work->plan, rc == WLB_UNREADABLE ? WLB_PLAN_FAILED : WLB_PLAN_REFUSED, error.message);
}

static struct plan_work *start(const struct wlb_launch *launch, const struct wlb_train_options *options,
                               struct wlb_error *error)
{
	struct plan_work *work = calloc(1, sizeof(*work));
	if (work == NULL) {
		wlb_fail(error, "out of memory for the plan");
		return NULL;
	}
	work->launch = launch;
	work->options = options;
	if (wlb_file_thread_start(&work->thread, "the plan", make, work, error) == 0)
		return work;
	free(work);
	return NULL;
}

/* Waits for the plan, which stays pending after round_s. */
static void await_plan(struct plan_work *work, double round_s, struct wlb_train_plan *plan)
{
	struct wlb_error error;
	double end_s = wlb_now_s() + round_s, storage_timeout_s = 60.0 * work->options->storage_timeout_minutes;
	while (wlb_now_s() < end_s) {
		if (wlb_file_thread_join_within(&work->thread, CHECK_EVERY_S)) {
			*plan = work->plan;
			free(work);
			return;
		}
		if (wlb_file_progress_check(&work->thread.progress, storage_timeout_s, &error) < 0) {
			end_without(plan, WLB_PLAN_FAILED, error.message);
			return;
		}
	}
}

int wlb_train_plan_agree(struct wlb_launch *launch, const struct wlb_train_options *options,
                         enum wlb_plan_state without_device, const char *device_error, struct wlb_train_plan *plan,
                         struct wlb_error *error)
{
	struct plan_work *work = NULL;
	struct wlb_error reason;
	*plan = (struct wlb_train_plan){.state = WLB_PLAN_PENDING};
	if (launch->rank == 0 && device_error != NULL)
		end_without(plan, without_device, device_error);
	else if (launch->rank == 0 && (work = start(launch, options, &reason)) == NULL)
		end_without(plan, WLB_PLAN_FAILED, reason.message);
	double round_s = FIRST_ROUND_S;
	int round = 0;
	do {
		char key[32];
		snprintf(key, sizeof(key), "wlb.plan.%d", round++);
		if (work != NULL)
			await_plan(work, round_s, plan);
		if (wlb_launch_share(launch, key, plan, sizeof(*plan), error) < 0)
			return -1;
		round_s = fmin(2.0 * round_s, LONGEST_ROUND_S);
	} while (plan->state == WLB_PLAN_PENDING);
	return 0;
}
