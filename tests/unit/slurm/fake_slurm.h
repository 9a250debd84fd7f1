/* libslurm's answers of a Slurm that has one job, or one job's steps, for the code in coordinator/slurm. */
#ifndef TESTS_UNIT_SLURM_FAKE_SLURM_H
#define TESTS_UNIT_SLURM_FAKE_SLURM_H

#include "coordinator/slurm/compat.h"

/* What slurm_load_job answers; a test sets it. */
extern slurm_job_info_t fake_slurm_job;

/* What slurm_get_job_steps answers; a test sets them. */
extern job_step_info_t fake_slurm_steps[4];
extern uint32_t fake_slurm_step_count;

void fake_slurm_set_job_id(uint32_t job_id);

#endif
