/* A thread that works with files, and how far it has come with them. */
#ifndef WORKER_DATA_FILE_THREAD_H
#define WORKER_DATA_FILE_THREAD_H

#include "worker/data/file_progress.h"

/* Stays where it is from wlb_file_thread_start until the thread was joined. */
struct wlb_file_thread {
	struct wlb_file_progress progress;
	pthread_t id;
	void (*run)(void *argument);
	void *argument;
};

/* Runs run(argument) in a new thread, which reports to thread->progress and takes no signals: they are left to the
 * threads that handle them. `name` says in the message of a failure whose thread it is. */
int wlb_file_thread_start(struct wlb_file_thread *thread, const char *name, void (*run)(void *argument), void *argument,
                          struct wlb_error *error);
/* Waits, without a bound, until run() has returned. */
void wlb_file_thread_join(struct wlb_file_thread *thread);
/* 1 when run() has returned and the thread was joined, 0 when it has not after `seconds`. */
int wlb_file_thread_join_within(struct wlb_file_thread *thread, double seconds);

#endif
