/*
 * The only file that depends on the Slurm release it is compiled against: 22.05 to 26.05. Where releases differ,
 * everything else, spank/ too, uses the names below. docs/slurm-versions.md lists the differences.
 */
#ifndef COORDINATOR_SLURM_COMPAT_H
#define COORDINATOR_SLURM_COMPAT_H

#include <stdint.h>
#include <stdio.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

/* Exported by every libslurm of these releases, declared by none of their headers. */
char *slurm_node_state_string(uint32_t state);
void slurm_xfree(void **item);

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
typedef hostlist_t *wlb_compat_hostlist;
#else
typedef hostlist_t wlb_compat_hostlist;
#endif

/* The job (`step_id` NO_VAL) or one of its steps. Members are set by name: 24.11 added one at the front. */
static inline slurm_step_id_t wlb_compat_step(uint32_t job_id, uint32_t step_id)
{
	return (slurm_step_id_t){.job_id = job_id, .step_id = step_id, .step_het_comp = NO_VAL};
}

static inline int wlb_compat_load_job(job_info_msg_t **reply, uint32_t job_id, uint16_t flags)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
	return slurm_load_job(reply, wlb_compat_step(job_id, NO_VAL), flags);
#else
	return slurm_load_job(reply, job_id, flags);
#endif
}

static inline uint32_t wlb_compat_job_id(const slurm_job_info_t *job)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
	return job->step_id.job_id;
#else
	return job->job_id;
#endif
}

static inline void wlb_compat_set_job_id(job_desc_msg_t *job, uint32_t job_id)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
	job->step_id = wlb_compat_step(job_id, NO_VAL);
#else
	job->job_id = job_id;
#endif
}

static inline int wlb_compat_requeue(uint32_t job_id)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
	return slurm_requeue(wlb_compat_step(job_id, NO_VAL), 0);
#else
	return slurm_requeue(job_id, 0);
#endif
}

static inline int wlb_compat_kill_step(uint32_t job_id, uint32_t step_id, uint16_t signal)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
	slurm_step_id_t step = wlb_compat_step(job_id, step_id);
	return slurm_kill_job_step(&step, signal, 0);
#elif SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
	return slurm_kill_job_step(job_id, step_id, signal, 0);
#else
	return slurm_kill_job_step(job_id, step_id, signal);
#endif
}

/* All steps of a job. */
static inline int wlb_compat_load_steps(job_step_info_response_msg_t **reply, uint32_t job_id)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
	slurm_step_id_t step = wlb_compat_step(job_id, NO_VAL);
	return slurm_get_job_steps(&step, reply, SHOW_ALL);
#else
	return slurm_get_job_steps(0, job_id, NO_VAL, reply, SHOW_ALL);
#endif
}

/* Sets who states the reason; from 26.05 slurmctld takes it from the request's credential. */
static inline void wlb_compat_set_reason_uid(update_node_msg_t *update, uint32_t uid)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
	(void)update;
	(void)uid;
#else
	update->reason_uid = uid;
#endif
}

static inline int wlb_compat_load_topology(topo_info_response_msg_t **reply)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
	return slurm_load_topo(reply, NULL);
#else
	return slurm_load_topo(reply);
#endif
}

/* One line for each switch. */
static inline void wlb_compat_print_topology(FILE *out, topo_info_response_msg_t *reply)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
	slurm_print_topo_info_msg(out, reply, NULL, NULL, 1);
#elif SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
	slurm_print_topo_info_msg(out, reply, NULL, 1);
#else
	if (reply->record_count > 0) /* else libslurm prints an error */
		slurm_print_topo_info_msg(out, reply, 1);
#endif
}

static inline void wlb_compat_free_conf(slurm_conf_t *conf)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
	slurm_free_conf(conf);
#else
	slurm_free_ctl_conf(conf);
#endif
}

#endif
