#include "coordinator/wlbd/api/step_id.h"

#include "coordinator/wlbd/http/route.h"
#include "coordinator/wlbd/slurm/slurm_requests.h"

int wlbd_step_id_check(const char *run, const char *step_id, struct wlb_error *error)
{
	uint32_t job_id = wlbd_run_job_id(run);
	uint32_t step;
	if (wlbd_slurm_step_number(job_id, step_id, &step))
		return 0;
	return wlb_fail(error, "field 'step_id': '%.31s' must be a step of the run's job, such as %u.0", step_id,
	                job_id);
}
