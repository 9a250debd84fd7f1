#include "tests/unit/slurm/fake_slurm.h"

#include <stdlib.h>

slurm_job_info_t fake_slurm_job;
job_step_info_t fake_slurm_steps[4];
uint32_t fake_slurm_step_count;

void fake_slurm_set_job_id(uint32_t job_id)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
	fake_slurm_job.step_id = wlb_compat_step(job_id, NO_VAL);
#else
	fake_slurm_job.job_id = job_id;
#endif
}

static int answer_job(job_info_msg_t **reply)
{
	*reply = calloc(1, sizeof(**reply));
	if (*reply == NULL)
		return SLURM_ERROR;
	(*reply)->record_count = 1;
	(*reply)->job_array = &fake_slurm_job;
	return SLURM_SUCCESS;
}

static int answer_steps(job_step_info_response_msg_t **reply)
{
	*reply = calloc(1, sizeof(**reply));
	if (*reply == NULL)
		return SLURM_ERROR;
	(*reply)->job_step_count = fake_slurm_step_count;
	(*reply)->job_steps = fake_slurm_steps;
	return SLURM_SUCCESS;
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
int slurm_load_job(job_info_msg_t **reply, slurm_step_id_t step, uint16_t flags)
{
	(void)step;
	(void)flags;
	return answer_job(reply);
}
#else
int slurm_load_job(job_info_msg_t **reply, uint32_t job_id, uint16_t flags)
{
	(void)job_id;
	(void)flags;
	return answer_job(reply);
}
#endif

void slurm_free_job_info_msg(job_info_msg_t *reply)
{
	free(reply);
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
int slurm_get_job_steps(slurm_step_id_t *step, job_step_info_response_msg_t **reply, uint16_t flags)
{
	(void)step;
	(void)flags;
	return answer_steps(reply);
}
#else
int slurm_get_job_steps(time_t since, uint32_t job_id, uint32_t step_id, job_step_info_response_msg_t **reply,
                        uint16_t flags)
{
	(void)since;
	(void)job_id;
	(void)step_id;
	(void)flags;
	return answer_steps(reply);
}
#endif

void slurm_free_job_step_info_response_msg(job_step_info_response_msg_t *reply)
{
	free(reply);
}
