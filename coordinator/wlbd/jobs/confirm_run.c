#include "coordinator/wlbd/jobs/confirm_run.h"

#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/wlbd.h"

void wlbd_run_confirm(struct wlbd *wlbd, int64_t run_pk, const struct wlb_slurm_job *job)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, run_pk);
	wlbd_params_add_integer(&params, job->submit_time);
	wlbd_params_add_integer(&params, job->restart_count);
	wlbd_params_add_text(&params, job->name);
	wlbd_params_add_text(&params, wlbd->cluster);
	wlbd_params_add_text(&params, job->alias);
	wlbd_outbox_put(
		wlbd->outbox, job->uid, run_pk,
		"select wlb_run_confirm($1, to_timestamp($2::float8), $3::integer, $4, $5), wlb_run_alias_note($1, $6)",
		&params);
}
