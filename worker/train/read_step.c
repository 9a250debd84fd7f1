/*
 * Reads the numbers of a step, exchanges those of the ranks, checks that loss and norm are finite, and tells wlb-agent
 * what this rank spent in the step.
 *
 * The numbers that the ranks exchange have how many ranks were asked to save and stop (stop_signals.h). So all ranks
 * know of it after the same step, and save that step or, where the next has been queued, the next.
 *
 * The computation that wlb-agent is told of is that of the passes, and the work is the seconds that the loader predicts
 * for them, so that their ratio is alike on the ranks of a stage. Of each communicator it is told the calls, their
 * bytes and how long they blocked the rank. That includes the wait for members that enter later, since a rank does not
 * know when the others enter. So of some calls a rank also tells when it entered and left them (common/call_choice.h):
 * by these clocks are aligned and links judged. The norm of the rank's own gradients would need a pass over them, and
 * is not told.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/seconds.h"
#include "worker/train/spans.h"
#include "worker/train/stop_signals.h"
#include "worker/train/trainer.h"

/* Writes why weights were not updated. */
static void describe_bad(const struct wlb_trainer *t, const struct wlb_unread_step *step,
                         const struct wlb_step_facts *facts, char *why, size_t size)
{
	if (!isfinite(facts->loss))
		snprintf(why, size, "the loss is not finite");
	else if (!isfinite(facts->grad_norm))
		snprintf(why, size, "the gradients are not finite");
	else
		snprintf(why, size,
		         "the gradient norm is %.4g, more than %g times the median of the steps before, %.4g",
		         facts->grad_norm, t->options->bad_norm_ratio, step->median_norm);
}

/* Rank 0 prints and records it. */
static void tell_skipped(const struct wlb_trainer *t, const struct wlb_step_facts *facts, const char *why)
{
	char detail[200];
	if (t->launch->rank != 0)
		return;
	snprintf(detail, sizeof(detail), "step %lld: %s", (long long)facts->step, why);
	fprintf(stderr, "wlb-worker: %s: the step is skipped\n", detail);
	wlb_record_event(t->recorder, "step_skipped", detail);
}

/* Waits until the step is computed, reads its times and sets loss and norm, which are the same on all ranks, and
 * whether the step is skipped; so is an error in them: WLB_FAILED_EVERYWHERE. */
static int read_sums(struct wlb_trainer *t, struct wlb_unread_step *step, struct wlb_step_facts *facts,
                     struct wlb_error *error)
{
	wlb_save_attend(t, step->computed);
	if (t->device->ops->event_wait(t->device, step->computed, error) < 0)
		return WLB_FAILED_HERE;
	if (step->events != NULL)
		wlb_step_events_read(step->events, step->began, &step->times, &step->transfers);
	facts->loss = facts->loss_tokens > 0 ? step->sums_host[WLB_SUM_LOSS] / (double)facts->loss_tokens : 0.0;
	facts->grad_norm = sqrt(step->sums_host[WLB_SUM_SQUARES]);
	facts->is_skipped = step->sums_host[WLB_CLIP_FACTOR] == 0.0;
	if (!facts->is_skipped) {
		t->bad_steps = 0;
		if (t->options->bad_norm_ratio > 0.0 && facts->loss_tokens > 0)
			wlb_recent_norms_add(&t->norms, facts->step, facts->grad_norm);
		return 0;
	}
	char why[160];
	describe_bad(t, step, facts, why, sizeof(why));
	if (++t->bad_steps <= t->options->skip_bad_steps) {
		tell_skipped(t, facts, why);
		return 0;
	}
	if (t->options->skip_bad_steps > 0)
		wlb_fail(error,
		         "step %lld: %s, as those of the %lld steps before: --skip-bad-steps %lld skips no more; lower "
		         "--lr, or raise --lr-warmup-iters",
		         (long long)facts->step, why, (long long)t->options->skip_bad_steps,
		         (long long)t->options->skip_bad_steps);
	else
		wlb_fail(error, "step %lld: %s: lower --lr, or raise --lr-warmup-iters", (long long)facts->step, why);
	if (t->launch->rank != 0)
		error->message[0] = '\0'; /* rank 0 has the same message */
	return WLB_FAILED_EVERYWHERE;
}

/* Returns the largest value over the mean of all ranks; 1 is perfect. */
static double imbalance(const double *of_ranks, int ranks)
{
	double most = 0.0, sum = 0.0;
	for (int i = 0; i < ranks; i++) {
		most = fmax(most, of_ranks[i]);
		sum += of_ranks[i];
	}
	return sum > 0.0 ? most * ranks / sum : 1.0;
}

/* Whether this rank has received the signal to save, or is the first one and the time for a checkpoint has come. With
 * --save-when-busy skip it comes once no checkpoint is being written: each step would leave one out until then. */
static int asks_to_save(const struct wlb_trainer *t)
{
	double interval_s = t->options->save_interval_s;
	int is_due = t->launch->rank == 0 && interval_s > 0.0 && wlb_now_s() - t->saved_s >= interval_s &&
	             (t->options->save_when_busy == WLB_SAVE_WAIT || !wlb_save_is_in_flight(t));
	return wlb_save_is_asked() || is_due;
}

/* Sends every rank the parts of the step's time: t->report holds the sums of the parts over all ranks, then each rank's
 * predicted work, its measured one and the memory it has allocated, by place in the layout, then the number of ranks
 * whose next step is not loaded yet, the stride that rank 0 has chosen, and the numbers of ranks that were asked to
 * save and stop, that ask for a checkpoint, that work for one, and that failed to: so all of them know of it after the
 * same step. */
static int exchange_report(struct wlb_trainer *t, const struct wlb_unread_step *step, struct wlb_step_facts *facts,
                           struct wlb_error *error)
{
	int ranks = t->launch->size;
	size_t count = wlb_trainer_report_count(ranks);
	double *work = t->report + WLB_STEP_PARTS, *compute_s = work + ranks;
	double *memory = compute_s + ranks, *not_loaded = memory + ranks;
	double *stride = not_loaded + 1, *asked = stride + 1, *save = asked + 1, *saving = save + 1;
	double *failed = saving + 1;
	struct wlb_error ignored; /* the next step has the same */
	memset(t->report, 0, count * sizeof(double));
	memcpy(t->report, step->times.s, sizeof(step->times.s));
	work[t->groups->place] = step->work;
	compute_s[t->groups->place] = step->times.compute_s;
	memory[t->groups->place] = (double)t->device->allocated_bytes;
	*not_loaded = wlb_loader_await(t->loader, 0.0, &ignored) > 0 ? 0.0 : 1.0;
	*stride = t->launch->rank == 0 ? (double)t->stride.chosen : 0.0;
	*asked = wlb_stop_is_asked() ? 1.0 : 0.0;
	*save = asks_to_save(t) ? 1.0 : 0.0;
	wlb_save_count(t, saving, failed);
	if (wlb_comm_all_reduce_double(t->world, t->report, count, WLB_SUM, error) < 0)
		return -1;
	for (int i = 0; i < WLB_STEP_PARTS; i++)
		facts->time_s[i] = t->report[i] / ranks;
	for (int i = 0; i < ranks; i++)
		facts->memory_bytes =
			memory[i] > (double)facts->memory_bytes ? (int64_t)memory[i] : facts->memory_bytes;
	facts->ranks = ranks;
	facts->rank_work = work;
	facts->rank_compute_s = compute_s;
	facts->predicted_imbalance = imbalance(work, ranks);
	facts->imbalance = imbalance(compute_s, ranks);
	t->next_is_loaded = *not_loaded == 0.0;
	t->stride.agreed = (int64_t)*stride;
	t->stop_asked = *asked > 0.0;
	t->save_asked |= *save > 0.0;
	return wlb_save_advance(t, *saving, *failed, error);
}

/* Of ranks that share a head by tensor parallelism the first one sums the loss. */
static int has_own_loss(const struct wlb_trainer *t, const struct wlb_unread_step *step)
{
	return t->groups->coords.tp == 0 && step->own_tokens > 0;
}

static struct wlb_trace_step traced_facts(const struct wlb_trainer *t, const struct wlb_unread_step *step,
                                          double seconds)
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

/* Reports to wlb-agent what this rank spent in a step that has just been read, where it is one of those that are
 * reported; the last step of a run that ends with it always is. */
static void trace_step(struct wlb_trainer *t, const struct wlb_unread_step *step, int is_last)
{
	double now_s = wlb_now_s(), seconds = now_s - (t->ended_s > 0.0 ? t->ended_s : step->started_s);
	if (t->area.trace != NULL && (is_last || wlb_step_stride_has(&t->stride, step->facts.step))) {
		struct wlb_trace_step facts = traced_facts(t, step, seconds);
		wlb_rank_trace_add_step(t->area.trace, &facts);
	}
	wlb_step_stride_note(&t->stride, seconds - t->aside_s);
	t->ended_s = now_s;
	t->aside_s = 0.0;
}

int wlb_trainer_read_step(struct wlb_trainer *t, struct wlb_step_facts *facts, struct wlb_error *error)
{
	struct wlb_unread_step *step = &t->unread[t->first_unread];
	*facts = step->facts;
	int rc = read_sums(t, step, facts, error);
	if (rc == WLB_FAILED_EVERYWHERE)
		trace_step(t, step, 1);
	if (rc < 0)
		return rc;
	if (exchange_report(t, step, facts, error) < 0)
		return WLB_FAILED_HERE;
	t->first_unread = (t->first_unread + 1) % WLB_UNREAD_STEPS_MAX;
	t->unread_count--;
	trace_step(t, step, 0);
	wlb_spans_end_step(t, step);
	/* A step that is read late ended before: its time is the device's. */
	facts->step_time_s = t->queue_depth == 0
	                             ? wlb_now_s() - step->started_s
	                             : t->device->ops->event_elapsed_s(t->device, step->began, step->computed);
	return 0;
}
