/* Tells wlb-agent what this rank spent in a step, from the times that are measured of every step. */
#include <math.h>

#include "common/seconds.h"
#include "worker/train/trainer.h"

/* Of ranks that share a head by tensor parallelism the first one sums the loss. */
static int has_own_loss(const struct wlb_trainer *t, const struct wlb_unread_step *step)
{
	return t->groups->at.tp == 0 && step->own_tokens > 0;
}

static struct wlb_trace_step facts_of(const struct wlb_trainer *t, const struct wlb_unread_step *step, double seconds)
{
	const double *part_s = step->times.s;
	/* The device waits for less than the host where it still computes the step before. */
	double loader_s = step->events != NULL ? fmin(step->loader_s, part_s[WLB_TIME_LOADER]) : step->loader_s;
	struct wlb_trace_step facts = {
		.step = step->facts.step,
		.seconds = seconds,
		.aside_s = t->aside_s,
		.computed_s = part_s[WLB_TIME_FORWARD] + part_s[WLB_TIME_BACKWARD],
		.work = step->predicted_s,
		.loader_s = loader_s,
		.storage_s = fmin(step->storage_s, loader_s),
		.has_loss = has_own_loss(t, step),
	};
	if (facts.has_loss)
		facts.loss = step->sums_host[WLB_OWN_LOSS] / (double)step->own_tokens;
	for (int i = 0; i < step->transfers.count; i++)
		if (step->transfers.list[i].calls > 0)
			facts.transfers[facts.transfer_count++] = step->transfers.list[i];
	return facts;
}

void wlb_trainer_trace_step(struct wlb_trainer *t, const struct wlb_unread_step *step, int is_last)
{
	double now_s = wlb_now_s(), seconds = now_s - (t->ended_s > 0.0 ? t->ended_s : step->started_s);
	if (t->area.trace != NULL && (is_last || wlb_step_stride_has(&t->stride, step->facts.step))) {
		struct wlb_trace_step facts = facts_of(t, step, seconds);
		wlb_rank_trace_add_step(t->area.trace, &facts);
	}
	wlb_step_stride_note(&t->stride, seconds - t->aside_s);
	t->ended_s = now_s;
	t->aside_s = 0.0;
}
