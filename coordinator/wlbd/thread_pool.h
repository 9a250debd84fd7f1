/*
 * Threads for what can only be asked by blocking calls (libslurm, libmunge). A task runs on one of the pool's
 * threads; its `done` runs later on the event loop. Tasks of a pool with one thread run in order.
 */
#ifndef COORDINATOR_WLBD_THREAD_POOL_H
#define COORDINATOR_WLBD_THREAD_POOL_H

#include <event2/event.h>

#include "libwlb/wlb.h"

struct wlbd_thread_pool;

/* Embedded at the start of the caller's own struct, which stays the caller's until `done` or `discard`: exactly one of
 * them is called, on the event loop's thread. */
struct wlbd_task {
	void (*run)(struct wlbd_task *task);     /* on a thread of the pool */
	void (*done)(struct wlbd_task *task);    /* it was run */
	void (*discard)(struct wlbd_task *task); /* it was not run: too many are waiting, or the pool is freed */
	struct wlbd_task *next;
};

/* `name` is for the log; at most `most` tasks wait for a thread. */
struct wlbd_thread_pool *wlbd_thread_pool_new(struct event_base *base, const char *name, int threads, int most,
                                              struct wlb_error *error);

/* Waits for the tasks that are running. The rest is discarded, or is done where it was run: these callbacks must not
 * submit anything. */
void wlbd_thread_pool_free(struct wlbd_thread_pool *pool);

/* From the event loop only. */
void wlbd_thread_pool_submit(struct wlbd_thread_pool *pool, struct wlbd_task *task);

#endif
