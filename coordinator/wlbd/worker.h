/*
 * Threads for what can only be asked by blocking calls (libslurm, libmunge). A job runs on one of the worker's
 * threads; its `done` runs later on the event loop. Jobs of a worker with one thread run in order.
 */
#ifndef COORDINATOR_WLBD_WORKER_H
#define COORDINATOR_WLBD_WORKER_H

#include <event2/event.h>

#include "libwlb/wlb.h"

struct wlbd_worker;

/* Embedded at the start of the caller's own struct, which stays the caller's until `done` or `discard`: exactly one of
 * them is called, on the event loop's thread. */
struct wlbd_job {
	void (*run)(struct wlbd_job *job);     /* on a thread of the worker */
	void (*done)(struct wlbd_job *job);    /* it was run */
	void (*discard)(struct wlbd_job *job); /* it was not run: too many are waiting, or the worker is freed */
	struct wlbd_job *next;
};

/* `name` is for the log; at most `most` jobs wait for a thread. */
struct wlbd_worker *wlbd_worker_new(struct event_base *base, const char *name, int threads, int most,
                                    struct wlb_error *error);

/* Waits for the jobs that are running. The rest is discarded, or is done where it was run: these callbacks must not
 * submit anything. */
void wlbd_worker_free(struct wlbd_worker *worker);

/* From the event loop only. */
void wlbd_worker_submit(struct wlbd_worker *worker, struct wlbd_job *job);

#endif
