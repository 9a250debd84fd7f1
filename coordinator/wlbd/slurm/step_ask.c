#include "coordinator/wlbd/slurm/step_ask.h"

#include <stdlib.h>

#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/slurm/slurm_ask.h"
#include "coordinator/wlbd/thread_pool.h"
#include "coordinator/wlbd/wlbd.h"

struct step_ask {
	struct wlbd_task task;
	uint32_t job_id;
	uint32_t step_id;
	int has_stepd;
	struct wlb_error error;
	void (*done)(void *context, int has_stepd);
	void *context;
};

static void run(struct wlbd_task *task)
{
	struct step_ask *ask = (struct step_ask *)task;
	ask->has_stepd = wlb_slurm_step_has_stepd(ask->job_id, ask->step_id, &ask->error);
}

static void finish(struct wlbd_task *task)
{
	struct step_ask *ask = (struct step_ask *)task;
	if (ask->has_stepd < 0)
		wlbd_log_limited(WLBD_LOG_INFO, WLBD_LIMIT_SLURM, "%s", ask->error.message);
	ask->done(ask->context, ask->has_stepd);
	free(ask);
}

static void discard(struct wlbd_task *task)
{
	struct step_ask *ask = (struct step_ask *)task;
	ask->done(ask->context, -1);
	free(ask);
}

void wlbd_slurm_step_has_stepd(struct wlbd *wlbd, uint32_t job_id, const char *slurm_step,
                               void (*done)(void *context, int has_stepd), void *context)
{
	uint32_t step_id;
	struct step_ask *ask =
		wlbd_slurm_step_number(job_id, slurm_step, &step_id) ? calloc(1, sizeof(*ask)) : NULL;
	if (ask == NULL) {
		done(context, -1);
		return;
	}
	ask->task = (struct wlbd_task){.run = run, .done = finish, .discard = discard};
	ask->job_id = job_id;
	ask->step_id = step_id;
	ask->done = done;
	ask->context = context;
	wlbd_thread_pool_submit(wlbd->slurm_questions, &ask->task);
}
