/* Which step a launcher runs, and whether a step has processes of Slurm left. */
#include "coordinator/slurm/compat.h"
#include "coordinator/slurm/slurm_api.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* srun states its host as gethostname() up to the first dot (xshort_hostname of Slurm's xstring.c). A step that another
 * kind of launcher made states none. */
static int find_short_host(char host[HOST_NAME_MAX + 1], struct wlb_error *error)
{
	if (gethostname(host, HOST_NAME_MAX + 1) != 0)
		return wlb_fail(error, "the name of this host cannot be read: %s", strerror(errno));
	host[strcspn(host, ".")] = '\0';
	return 0;
}

/* A process of another host, which has started a step in the same job, may have the same pid. */
static bool is_of(const job_step_info_t *step, pid_t srun_pid, const char *host)
{
	return step->srun_pid == (uint32_t)srun_pid && (step->srun_host == NULL || strcmp(step->srun_host, host) == 0);
}

int wlb_slurm_step_of(uint32_t job_id, pid_t srun_pid, uint32_t *step_id, struct wlb_error *error)
{
	char host[HOST_NAME_MAX + 1];
	job_step_info_response_msg_t *reply = NULL;
	if (find_short_host(host, error) != 0)
		return -1;
	if (wlb_compat_load_steps(&reply, job_id) != SLURM_SUCCESS)
		return wlb_fail(error, "job %u: Slurm does not list its steps: %s", job_id, slurm_strerror(errno));
	int found = 0;
	for (uint32_t i = 0; i < reply->job_step_count && !found; i++) {
		const job_step_info_t *step = &reply->job_steps[i];
		if (!is_of(step, srun_pid, host))
			continue;
		*step_id = step->step_id.step_id;
		found = 1;
	}
	slurm_free_job_step_info_response_msg(reply);
	return found;
}

/* A slurmd answers ESLURM_INVALID_JOB_ID where its node has no slurmstepd of the step (_rpc_list_pids of slurmd's
 * req.c). So does slurmctld where the step has ended: which nodes it had is asked first, to tell these two apart. */
int wlb_slurm_step_has_stepd(uint32_t job_id, uint32_t step_id, struct wlb_error *error)
{
	slurm_step_id_t step = wlb_compat_step(job_id, step_id);
	job_step_pids_response_msg_t *reply = NULL;
	slurm_step_layout_t *layout = slurm_job_step_layout_get(&step);
	if (layout == NULL)
		return wlb_fail(error, "step %u.%u: Slurm does not say which nodes it has: %s", job_id, step_id,
		                slurm_strerror(errno));
	int rc = slurm_job_step_get_pids(&step, layout->node_list, &reply);
	int found = reply != NULL && reply->pid_list != NULL;
	slurm_job_step_pids_response_msg_free(reply);
	slurm_job_step_layout_free(layout);
	if (found || rc == ESLURM_INVALID_JOB_ID)
		return found;
	return wlb_fail(error, "step %u.%u: its nodes do not say whether they have a slurmstepd of it: %s", job_id,
	                step_id, slurm_strerror(rc));
}
