#include "worker/launch/deadline.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void *wait_for_end(void *argument)
{
	struct wlb_deadline *d = argument;
	struct timespec until;
	int rc;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += d->limit_s;
	while ((rc = sem_clockwait(&d->over, CLOCK_MONOTONIC, &until)) < 0 && errno == EINTR)
		;
	if (rc == 0)
		return NULL;
	dprintf(STDERR_FILENO,
	        "%s: process %d: %s has not returned for %d s: does the step's slurmstepd on this node respond?\n",
	        program_invocation_short_name, (int)getpid(), d->call, d->limit_s);
	_exit(d->exit_code);
}

void wlb_deadline_start(struct wlb_deadline *d, const char *call, int limit_s, int exit_code)
{
	*d = (struct wlb_deadline){.call = call, .limit_s = limit_s, .exit_code = exit_code};
	sem_init(&d->over, 0, 0);
	d->has_thread = pthread_create(&d->thread, NULL, wait_for_end, d) == 0;
}

void wlb_deadline_stop(struct wlb_deadline *d)
{
	sem_post(&d->over);
	if (d->has_thread)
		pthread_join(d->thread, NULL);
	sem_destroy(&d->over);
}
