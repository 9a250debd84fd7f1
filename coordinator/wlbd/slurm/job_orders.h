/*
 * Orders to Slurm to requeue a job or to end it. At most one order is under way for a job: where a poll of the jobs
 * finds the same as the poll before, while the order waits for its turn, it gives no second order.
 */
#ifndef COORDINATOR_WLBD_SLURM_JOB_ORDERS_H
#define COORDINATOR_WLBD_SLURM_JOB_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

struct wlbd;
struct wlbd_job_orders;

/* Returns NULL if out of memory. */
struct wlbd_job_orders *wlbd_job_orders_new(void);
void wlbd_job_orders_free(struct wlbd_job_orders *orders); /* when none is under way; NULL is allowed */

bool wlbd_job_orders_has(const struct wlbd_job_orders *orders, uint32_t job_id);

enum wlbd_job_order { WLBD_JOB_REQUEUE, WLBD_JOB_KILL };

/* Calls `done` once, from the event loop or at once, unless it is NULL: with NULL where Slurm has carried the order
 * out, else with the reason. No order of the job may be under way. */
void wlbd_job_orders_give(struct wlbd *wlbd, enum wlbd_job_order what, uint32_t job_id, const char *why,
                          void (*done)(void *context, const char *failure), void *context);

#endif
