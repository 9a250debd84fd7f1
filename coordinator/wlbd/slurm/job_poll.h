/*
 * When the Slurm jobs of open runs are looked at (jobs.h): all jobs every job_poll_ms of the settings, and a job to
 * which something happened each second for half a minute.
 */
#ifndef COORDINATOR_WLBD_SLURM_JOB_POLL_H
#define COORDINATOR_WLBD_SLURM_JOB_POLL_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

struct wlbd_job_poll;

/* `poll` is called from the event loop; the next call is due after wlbd_job_poll_done. Returns NULL if out of memory.
 */
struct wlbd_job_poll *wlbd_job_poll_new(struct event_base *base, int interval_ms, void (*poll)(void *context),
                                        void *context);
void wlbd_job_poll_free(struct wlbd_job_poll *poll); /* NULL is allowed */

void wlbd_job_poll_done(struct wlbd_job_poll *poll);

/* Something happened to the job. `with_nodes`: what Slurm says of the nodes is needed, too. */
void wlbd_job_poll_soon(struct wlbd_job_poll *poll, uint32_t job_id, bool with_nodes);

/* All jobs are looked at within a second, once. */
void wlbd_job_poll_all(struct wlbd_job_poll *poll);

/* Of the poll that is under way: whether the job is looked at, and whether the nodes are. */
bool wlbd_job_poll_has(const struct wlbd_job_poll *poll, uint32_t job_id);
bool wlbd_job_poll_has_nodes(const struct wlbd_job_poll *poll);

#endif
