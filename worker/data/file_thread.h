/* A thread that works with files, and its progress. */
#ifndef WORKER_DATA_FILE_THREAD_H
#define WORKER_DATA_FILE_THREAD_H

#include "worker/data/file_progress.h"

/* Must not move from wlb_file_thread_start until the thread is joined. */
struct wlb_file_thread {
	struct wlb_file_progress progress;
	pthread_t id;
	void (*run)(void *argument);
	void *argument;
};

/* Runs run(argument) in a new thread, which reports to thread->progress and blocks all signals, so that other threads
 * handle them. `name` is the name of the thread in the message of a failure. */
int wlb_file_thread_start(struct wlb_file_thread *thread, const char *name, void (*run)(void *argument), void *argument,
                          struct wlb_error *error);
/* Waits, without a bound, until run() has returned. */
void wlb_file_thread_join(struct wlb_file_thread *thread);
/* Returns 1 when run() has returned and the thread is joined, 0 when run() has not returned after `seconds`. */
int wlb_file_thread_join_within(struct wlb_file_thread *thread, double seconds);

#endif
