#include "worker/data/file_thread.h"

#include <signal.h>
#include <string.h>

#include "common/seconds.h"

static void *run(void *argument)
{
	struct wlb_file_thread *thread = argument;
	wlb_file_progress_use(&thread->progress);
	thread->run(thread->argument);
	return NULL;
}

int wlb_file_thread_start(struct wlb_file_thread *thread, const char *name, void (*work)(void *argument),
                          void *argument, struct wlb_error *error)
{
	sigset_t all, before;
	thread->run = work;
	thread->argument = argument;
	wlb_file_progress_init(&thread->progress);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failure = pthread_create(&thread->id, NULL, run, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failure == 0)
		return 0;
	wlb_file_progress_destroy(&thread->progress);
	return wlb_fail(error, "the thread of %s cannot be started: %s", name, strerror(failure));
}

void wlb_file_thread_join(struct wlb_file_thread *thread)
{
	pthread_join(thread->id, NULL);
	wlb_file_progress_destroy(&thread->progress);
}

int wlb_file_thread_join_within(struct wlb_file_thread *thread, double seconds)
{
	struct timespec until = wlb_after_s(seconds);
	if (pthread_clockjoin_np(thread->id, NULL, CLOCK_MONOTONIC, &until) != 0)
		return 0;
	wlb_file_progress_destroy(&thread->progress);
	return 1;
}
