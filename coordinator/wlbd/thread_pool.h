/*
 * Threads for what blocks (libslurm, libmunge) or takes long. A task runs on one of the pool's threads; its `done` runs
 * later on the event loop. A pool with one thread runs its tasks in order. With several, the next task is the oldest of
 * the owner (a user) with the fewest that run, and an owner never has all threads; so one owner's slow tasks delay
 * others little.
 */
#ifndef COORDINATOR_WLBD_THREAD_POOL_H
#define COORDINATOR_WLBD_THREAD_POOL_H

#include <event2/event.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

struct wlbd_thread_pool;

/* The first member of the caller's own struct, which must live until `done` or `discard`: exactly one of them is
 * called, on the event loop's thread (see wlbd_thread_pool_abandon for one exception). */
struct wlbd_task {
	void (*run)(struct wlbd_task *task);     /* on a thread of the pool */
	void (*done)(struct wlbd_task *task);    /* after it was run */
	void (*discard)(struct wlbd_task *task); /* instead: too many tasks wait, or the pool is freed or abandoned */
	uid_t owner;                             /* 0: wlbd's own, or root's, which count as none that run */
	struct wlbd_task *next;
};

/* `name` is for the log. At most `max` tasks wait for a thread, of each owner as coordinator/wlbd/budget.h says, where
 * an eighth of them is for owner 0 alone: what is submitted beyond that is discarded. Returns NULL if out of memory or
 * of threads. */
struct wlbd_thread_pool *wlbd_thread_pool_new(struct event_base *base, const char *name, int threads, int max,
                                              struct wlb_error *error);

/* Waits for the tasks that are running, and calls `done` or `discard` of every task: these must not submit a task. NULL
 * is allowed. */
void wlbd_thread_pool_free(struct wlbd_thread_pool *pool);

/* The same for tasks that may hang, without a wait: `discard` of a task that is running is called when that ends, on
 * its thread, and must then touch what belongs to the task only. NULL is allowed. */
void wlbd_thread_pool_abandon(struct wlbd_thread_pool *pool);

/* From the event loop only. */
void wlbd_thread_pool_submit(struct wlbd_thread_pool *pool, struct wlbd_task *task);

#endif
