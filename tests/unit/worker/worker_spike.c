/*
 * wlb-worker of which some steps have other gradients: BAD_STEPS, "20:1000 25:nan", multiplies those of step 20 by
 * 1000. The linker calls the functions below in place of the worker's (--wrap); the head must be on the last stage
 * alone.
 */
#include <stdio.h>
#include <stdlib.h>

#include "worker/train/trainer.h"

int __real_wlb_trainer_step(struct wlb_trainer *t, struct wlb_error *error);
int __wrap_wlb_trainer_step(struct wlb_trainer *t, struct wlb_error *error);
int __real_wlb_head_loss(struct wlb_transformer *t, int chunk, struct wlb_slot *slot,
                         const struct wlb_micro_batch *batch, double *loss_sum, double scale,
                         const struct wlb_backward_watch *watch, struct wlb_error *error);
int __wrap_wlb_head_loss(struct wlb_transformer *t, int chunk, struct wlb_slot *slot,
                         const struct wlb_micro_batch *batch, double *loss_sum, double scale,
                         const struct wlb_backward_watch *watch, struct wlb_error *error);

static long long step_in_progress;

int __wrap_wlb_trainer_step(struct wlb_trainer *t, struct wlb_error *error)
{
	step_in_progress = t->step + 1;
	return __real_wlb_trainer_step(t, error);
}

static double factor(void)
{
	long long step;
	double found;
	int used;
	const char *text = getenv("BAD_STEPS");
	while (text != NULL && sscanf(text, " %lld:%lf%n", &step, &found, &used) == 2) {
		if (step == step_in_progress)
			return found;
		text += used;
	}
	return 1.0;
}

int __wrap_wlb_head_loss(struct wlb_transformer *t, int chunk, struct wlb_slot *slot,
                         const struct wlb_micro_batch *batch, double *loss_sum, double scale,
                         const struct wlb_backward_watch *watch, struct wlb_error *error)
{
	return __real_wlb_head_loss(t, chunk, slot, batch, loss_sum, scale * factor(), watch, error);
}
