/* Questions and orders to Slurm, on threads, since libslurm blocks. */
#ifndef COORDINATOR_WLBD_SLURM_SLURM_REQUESTS_H
#define COORDINATOR_WLBD_SLURM_SLURM_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "coordinator/slurm/slurm_api.h"

struct wlbd;

struct wlbd_job_facts {
	int found; /* 1; 0: Slurm does not know the job; -1: Slurm does not answer */
	struct wlb_slurm_job job;
	uid_t uid;      /* of the job; of the asker where it was not found */
	char user[256]; /* name of that uid; its number where that is not known in time */
	struct wlb_error error;
};

/* Asks in the turn of `asker` (0: root, or wlbd itself). Calls `done` once from the event loop, or at once if out of
 * memory. `facts` are valid during that call. */
void wlbd_slurm_job(struct wlbd *wlbd, uint32_t job_id, uid_t asker,
                    void (*done)(void *context, const struct wlbd_job_facts *facts), void *context);
/* As wlbd_slurm_job, for the poll of all open runs. Its questions have a turn of their own, since users can make many
 * of them. */
void wlbd_slurm_job_poll(struct wlbd *wlbd, uint32_t job_id,
                         void (*done)(void *context, const struct wlbd_job_facts *facts), void *context);

/* Asks whether slurmctld answers again, where it did not answer the last question. */
void wlbd_slurm_ping(struct wlbd *wlbd);

/* Whether the text is the id of a step of the job, such as "12.0"; *step receives its number then. */
bool wlbd_slurm_step_number(uint32_t job_id, const char *slurm_step, uint32_t *step);

/* Whether a step has a slurmstepd left. Calls `done` once from the event loop, or at once if out of memory, with what
 * wlb_slurm_step_has_stepd returned: 1, 0, or -1 where that is not known. `slurm_step` is an id such as "12.0"; an id
 * that is not of the job is not known. */
void wlbd_slurm_step_has_stepd(struct wlbd *wlbd, uint32_t job_id, const char *slurm_step,
                               void (*done)(void *context, int has_stepd), void *context);

/* Orders; the log says what became of each. */
void wlbd_slurm_node_down(struct wlbd *wlbd, const char *node, const char *reason);
/* Kills the step if it is one of the job, and if Slurm says that the job belongs to `owner`. */
void wlbd_slurm_step_kill(struct wlbd *wlbd, uint32_t job_id, uid_t owner, const char *slurm_step, const char *why,
                          void (*done)(void *context, const char *failure), void *context);
/* All but that of a node call `done` once from the event loop, or at once if out of memory: with NULL where Slurm has
 * carried it out, else with the reason. */
void wlbd_slurm_resize(struct wlbd *wlbd, uint32_t job_id, uint32_t min_nodes,
                       void (*done)(void *context, const char *failure), void *context);
void wlbd_slurm_requeue(struct wlbd *wlbd, uint32_t job_id, const char *why,
                        void (*done)(void *context, const char *failure), void *context);
void wlbd_slurm_job_kill(struct wlbd *wlbd, uint32_t job_id, const char *why,
                         void (*done)(void *context, const char *failure), void *context);

/* Sets wlbd->slurm_uid and wlbd->cluster; asks again until Slurm answers. */
void wlbd_slurm_identify(struct wlbd *wlbd);

#endif
