#include "coordinator/wlbd/slurm/job_params.h"

void wlbd_params_add_job(struct wlbd_params *params, const struct wlb_slurm_job *job)
{
	wlbd_params_add_text(params, job != NULL ? job->alias : "");
	wlbd_params_add_text(params, job != NULL ? job->account : "");
	wlbd_params_add_integer(params, job != NULL ? job->gpus : 0);
}
