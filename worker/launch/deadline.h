/* Bounds a call that has no time-out of its own: the process ends where the call lasts longer. */
#ifndef WORKER_LAUNCH_DEADLINE_H
#define WORKER_LAUNCH_DEADLINE_H

#include <pthread.h>
#include <semaphore.h>

struct wlb_deadline {
	pthread_t thread;
	sem_t over;
	int has_thread;
	const char *call;
	int limit_s;
	int exit_code;
};

/* Unless it is stopped within limit_s, the process prints that `call`, a string literal, has not returned, and ends
 * with the exit code, without cleaning up. Where no thread can be started, the call is not bounded. */
void wlb_deadline_start(struct wlb_deadline *deadline, const char *call, int limit_s, int exit_code);
void wlb_deadline_stop(struct wlb_deadline *deadline);

#endif
