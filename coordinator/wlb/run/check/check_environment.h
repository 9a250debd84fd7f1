/* The environment of the srun that starts a check in a step of the job. */
#ifndef COORDINATOR_WLB_RUN_CHECK_CHECK_ENVIRONMENT_H
#define COORDINATOR_WLB_RUN_CHECK_CHECK_ENVIRONMENT_H

/* Changes the environment of this process, a child that becomes srun: the step belongs to no attempt, and its task on a
 * node gets all CPUs, memory and GPUs that the job has there, whatever a task of the job gets. */
void wlb_check_environment_set(void);

#endif
