/*
 * When the Slurm jobs of open runs are looked at (jobs.h): every job_poll_ms of the settings, and each second for half
 * a minute after something happened to one of them.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_JOB_POLL_H
#define COORDINATOR_WLBD_LIVENESS_JOB_POLL_H

#include <event2/event.h>

struct wlbd_job_poll;

/* `poll` is called from the event loop; the next call is due after wlbd_job_poll_done. Returns NULL if out of memory.
 */
struct wlbd_job_poll *wlbd_job_poll_new(struct event_base *base, int interval_ms, void (*poll)(void *context),
                                        void *context);
void wlbd_job_poll_free(struct wlbd_job_poll *poll); /* NULL is allowed */

void wlbd_job_poll_done(struct wlbd_job_poll *poll);

/* Something happened to a job. */
void wlbd_job_poll_soon(struct wlbd_job_poll *poll);

#endif
