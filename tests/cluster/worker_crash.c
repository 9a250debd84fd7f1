/*
 * wlb-worker whose program fails after step CRASH_AFTER, on another node in each attempt of a run: attempt 1 on its
 * first node, attempt 2 on its second. The linker calls the function below in place of the trainer's (--wrap).
 */
#include <signal.h>
#include <stdlib.h>

#include "worker/train/trainer.h"

int __real_wlb_trainer_step(struct wlb_trainer *t, struct wlb_error *error);
int __wrap_wlb_trainer_step(struct wlb_trainer *t, struct wlb_error *error);

static long number_of(const char *name)
{
	const char *text = getenv(name);
	return text != NULL ? atol(text) : -1;
}

static int is_to_crash(const struct wlb_trainer *t)
{
	const struct wlb_launch *launch = t->launch;
	return t->step == number_of("CRASH_AFTER") && launch->local_rank == 0 &&
	       launch->node_of[launch->rank] == (number_of("WLB_ATTEMPT") - 1) % launch->node_count;
}

int __wrap_wlb_trainer_step(struct wlb_trainer *t, struct wlb_error *error)
{
	if (is_to_crash(t))
		raise(SIGSEGV);
	return __real_wlb_trainer_step(t, error);
}
