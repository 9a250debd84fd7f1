/* What wlbd asks of Slurm and tells it, on the one thread that calls libslurm. */
#ifndef COORDINATOR_WLBD_SLURM_SLURM_ASK_H
#define COORDINATOR_WLBD_SLURM_SLURM_ASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "coordinator/slurm/slurm_api.h"

struct wlbd;

struct wlbd_job_facts {
	int found; /* 1; 0: Slurm does not know it (any more); -1: Slurm does not answer */
	struct wlb_slurm_job job;
	uid_t uid;      /* of the job; where it was not found, of whoever asked */
	char user[256]; /* name of that uid */
	struct wlb_error error;
};

/* `facts` are valid during the call. */
void wlbd_slurm_job(struct wlbd *wlbd, uint32_t job_id, uid_t asker,
                    void (*done)(void *context, const struct wlbd_job_facts *facts), void *context);

/* Where slurmctld did not answer the last question: finds out whether it does again. */
void wlbd_slurm_find_out(struct wlbd *wlbd);

/* Whether the text is the id of a step of the job; its number then. */
bool wlbd_slurm_step_number(uint32_t job_id, const char *slurm_step, uint32_t *step);

/* These say in the log how it went. */
void wlbd_slurm_node_down(struct wlbd *wlbd, const char *node, const char *reason);
/* Kills step "12.0" if it is of job 12 = `job_id`, and that job of `owner` by Slurm's word. */
void wlbd_slurm_step_kill(struct wlbd *wlbd, uint32_t job_id, uid_t owner, const char *slurm_step, const char *why);
void wlbd_slurm_resize(struct wlbd *wlbd, uint32_t job_id, uint32_t min_nodes, uint32_t max_nodes);
void wlbd_slurm_requeue(struct wlbd *wlbd, uint32_t job_id, const char *why);

/* SlurmUser and the cluster's name, into wlbd; asked again until Slurm answers. */
void wlbd_slurm_identify(struct wlbd *wlbd);

#endif
