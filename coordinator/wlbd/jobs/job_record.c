#include "coordinator/wlbd/jobs/job_record.h"

#include <string.h>

#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/slurm/job_params.h"
#include "coordinator/wlbd/wlbd.h"

void wlbd_run_confirm(struct wlbd *wlbd, int64_t run_pk, const struct wlb_slurm_job *job)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, run_pk);
	wlbd_params_add_integer(&params, job->submit_time);
	wlbd_params_add_integer(&params, job->restart_count);
	wlbd_params_add_text(&params, job->name);
	wlbd_params_add_text(&params, wlbd->cluster);
	wlbd_params_add_job(&params, job);
	wlbd_outbox_put(wlbd->outbox, job->uid, run_pk,
	                "select wlb_run_confirm($1, to_timestamp($2::float8), $3::integer, $4, $5), "
	                "wlb_run_job_note($1, $6, $7, $8)",
	                &params);
}

static void note_queued(struct wlbd *wlbd, int64_t run_pk, const struct wlb_slurm_job *job)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, run_pk);
	wlbd_params_add_integer(&params, job->restart_count);
	wlbd_outbox_put(wlbd->outbox, job->uid, run_pk, "select wlb_run_queued($1, $2::integer)", &params);
}

/* A requeue clears suspend_time: the suspension ended when the job was submitted anew. */
static void note_suspended(struct wlbd *wlbd, int64_t run_pk, const struct wlb_slurm_job *job)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, run_pk);
	wlbd_params_add_boolean(&params, job->suspended);
	wlbd_params_add_integer(&params, job->suspend_time > 0 ? job->suspend_time : job->submit_time);
	wlbd_outbox_put(wlbd->outbox, job->uid, run_pk,
	                "select wlb_run_suspended($1, $2::boolean, to_timestamp($3::float8))", &params);
}

void wlbd_job_clock_note(struct wlbd *wlbd, const struct wlbd_job_clock *recorded, const struct wlb_slurm_job *job)
{
	/* What is still to be stored is newer than what is recorded; the next poll compares again. */
	if (wlbd_outbox_holds(wlbd->outbox, recorded->run_pk))
		return;
	if (strcmp(job->state, "PENDING") == 0 && !recorded->is_waiting && job->restart_count > recorded->restart_count)
		note_queued(wlbd, recorded->run_pk, job);
	if (job->suspended != recorded->is_suspended)
		note_suspended(wlbd, recorded->run_pk, job);
}
