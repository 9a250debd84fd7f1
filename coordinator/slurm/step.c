/* Which step a launcher runs. */
#include "coordinator/slurm/compat.h"
#include "coordinator/slurm/slurm_api.h"

#include <errno.h>

int wlb_slurm_step_of(uint32_t job_id, pid_t srun_pid, uint32_t *step_id, struct wlb_error *error)
{
	job_step_info_response_msg_t *reply = NULL;
	if (wlb_compat_load_steps(&reply, job_id) != SLURM_SUCCESS)
		return wlb_fail(error, "job %u: Slurm does not list its steps: %s", job_id, slurm_strerror(errno));
	int found = 0;
	for (uint32_t i = 0; i < reply->job_step_count && !found; i++) {
		const job_step_info_t *step = &reply->job_steps[i];
		if (step->srun_pid != (uint32_t)srun_pid)
			continue;
		*step_id = step->step_id.step_id;
		found = 1;
	}
	slurm_free_job_step_info_response_msg(reply);
	return found;
}
