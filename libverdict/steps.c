#include "libverdict/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libverdict/bounds.h"
#include "libverdict/error.h"
#include "libverdict/history.h"
#include "libverdict/kinds.h"
#include "libverdict/streams.h"

/* A step has ended where half of the ranks have reported one so many collected steps later: ranks that report about
 * each second report several steps at once, and others of the same time a second later. */
enum { STEPS_LATER = 8 };

static void clear_slot(struct verdict_slot *slot, const struct verdict_world *world, int64_t step)
{
	slot->step = step;
	slot->reported = 0;
	memset(slot->has, 0, (size_t)world->ranks);
	for (int32_t m = 0; slot->has_transfers && m < world->memberships; m++)
		slot->transfer[m] = NAN;
	slot->has_transfers = 0;
}

int verdict_steps_init(struct verdict_steps *steps, const struct verdict_world *world)
{
	size_t ranks = (size_t)world->ranks;
	int failed = 0;
	steps->last = -1;
	for (int i = 0; i < VERDICT_SLOTS; i++) {
		struct verdict_slot *slot = &steps->slot[i];
		double **arrays[] = {&slot->seconds,   &slot->computed_s, &slot->work,    &slot->loader_s,
		                     &slot->storage_s, &slot->value[0],   &slot->value[1]};
		for (size_t a = 0; a < sizeof(arrays) / sizeof(arrays[0]); a++) {
			*arrays[a] = calloc(ranks, sizeof(double));
			failed |= *arrays[a] == NULL;
		}
		slot->has = calloc(ranks, 1);
		slot->has_value = calloc(ranks, 1);
		slot->transfer = calloc((size_t)world->memberships + 1, sizeof(*slot->transfer));
		failed |= slot->has == NULL || slot->has_value == NULL || slot->transfer == NULL;
		slot->has_transfers = 1;
		if (!failed)
			clear_slot(slot, world, -1);
	}
	return failed ? -1 : 0;
}

void verdict_steps_free(struct verdict_steps *steps)
{
	for (int i = 0; i < VERDICT_SLOTS; i++) {
		struct verdict_slot *slot = &steps->slot[i];
		free(slot->seconds);
		free(slot->computed_s);
		free(slot->work);
		free(slot->loader_s);
		free(slot->storage_s);
		free(slot->value[0]);
		free(slot->value[1]);
		free(slot->has);
		free(slot->has_value);
		free(slot->transfer);
	}
}

static int check_step(const struct wlb_verdict_detector *detector, const struct wlb_verdict_step *step,
                      struct wlb_verdict_error *error)
{
	const double lengths[] = {step->seconds, step->aside_s,  step->computed_s,
	                          step->work,    step->loader_s, step->storage_s};
	if (step->rank < 0 || step->rank >= detector->world.ranks || step->step < 0 || step->step > INT64_MAX / 2)
		return verdict_fail(error, "step %lld of rank %d: ranks are 0 to %d, steps 0 to 2^62 - 1",
		                    (long long)step->step, step->rank, detector->world.ranks - 1);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		if (!isfinite(lengths[i]))
			return verdict_fail(error,
			                    "step %lld of rank %d: %g: seconds, aside_s, computed_s, work, loader_s "
			                    "and storage_s must be finite; negative: unknown",
			                    (long long)step->step, step->rank, lengths[i]);
	if (step->transfer_count < 0 || (step->transfer_count > 0 && step->transfers == NULL))
		return verdict_fail(error,
		                    "step %lld of rank %d: transfer_count %d: must be at least 0, and transfers not "
		                    "NULL if it is above 0",
		                    (long long)step->step, step->rank, step->transfer_count);
	for (int32_t i = 0; i < step->transfer_count; i++) {
		const struct wlb_verdict_transfer *transfer = &step->transfers[i];
		if (verdict_world_find(&detector->world, step->rank, transfer->group) < 0 || transfer->calls < 0 ||
		    !isfinite(transfer->transfer_s) || !isfinite(transfer->bytes))
			return verdict_fail(error,
			                    "step %lld of rank %d: group %d, calls %lld, transfer_s %g, bytes %g: the "
			                    "rank must be a member, calls at least 0, times and bytes finite",
			                    (long long)step->step, step->rank, transfer->group,
			                    (long long)transfer->calls, transfer->transfer_s, transfer->bytes);
	}
	return 0;
}

/* Returns the time in which the steps that a rank reports now may have passed: since its last report of one at another
 * time. */
static double since_steps_s(struct wlb_verdict_detector *detector, int32_t r)
{
	double *steps_job_s = detector->rank[r].steps_job_s, now_s = detector->time.job_s;
	if (now_s > steps_job_s[1]) {
		steps_job_s[0] = steps_job_s[1];
		steps_job_s[1] = now_s;
	}
	return steps_job_s[1] - steps_job_s[0];
}

static void take_transfers(struct wlb_verdict_detector *detector, const struct wlb_verdict_step *step,
                           struct verdict_slot *slot)
{
	double most_s = fmin(step->seconds, since_steps_s(detector, step->rank));
	for (int32_t i = 0; i < step->transfer_count; i++) {
		const struct wlb_verdict_transfer *transfer = &step->transfers[i];
		if (transfer->calls == 0 || !(transfer->transfer_s > 0.0) || !(transfer->bytes > 0.0))
			continue;
		int32_t own = verdict_world_find(&detector->world, step->rank, transfer->group);
		int32_t m = verdict_stream_of(&detector->world, own).membership;
		double byte_s = log(transfer->transfer_s / transfer->bytes);
		if (!verdict_stream_is_shared(&detector->world, m) || !(slot->transfer[m] <= byte_s))
			slot->transfer[m] = byte_s;
		slot->has_transfers = 1;
		/* No longer than the step, and than the time in which it passed, whatever clock has jumped: a length
		 * that cannot be teaches no bound. */
		double call_s = transfer->transfer_s / (double)transfer->calls;
		if (transfer->transfer_s <= most_s &&
		    !verdict_has_stood_still(detector, detector->time.job_s - step->seconds) &&
		    detector->steps.count >= detector->options.warm_up_steps)
			verdict_bounds_learn_call(detector, detector->time.job_s, most_s, call_s);
	}
}

static void fill_slot(struct wlb_verdict_detector *detector, const struct wlb_verdict_step *step,
                      struct verdict_slot *slot)
{
	int32_t r = step->rank;
	slot->has[r] = 1;
	slot->reported++;
	slot->seconds[r] = step->seconds - (step->aside_s > 0.0 ? step->aside_s : 0.0);
	slot->computed_s[r] = step->computed_s;
	slot->work[r] = step->work;
	slot->loader_s[r] = step->loader_s;
	slot->storage_s[r] = step->storage_s;
	slot->value[0][r] = step->loss;
	slot->value[1][r] = step->gradient_norm;
	slot->has_value[r] = (unsigned char)((step->has_loss != 0) | (step->has_gradient_norm != 0) << 1);
	take_transfers(detector, step, slot);
}

static void judge_step(struct wlb_verdict_detector *detector, struct verdict_slot *slot)
{
	if (2 * slot->reported < detector->world.ranks)
		return;
	if (++detector->steps.count <= detector->options.warm_up_steps)
		return;
	verdict_compute_step(detector, slot);
	verdict_links_step(detector, slot);
	verdict_loader_step(detector, slot);
	verdict_loss_step(detector, slot);
	verdict_history_add(detector, slot);
}

/* Returns how many steps before this one are collected. */
static int count_before(const struct verdict_steps *steps, int64_t step)
{
	int before = 0;
	for (int i = 0; i < VERDICT_SLOTS; i++)
		before += steps->slot[i].step >= 0 && steps->slot[i].step < step;
	return before;
}

/* Returns the first of the steps that are collected, NULL where there is none. */
static struct verdict_slot *first_slot(struct verdict_steps *steps)
{
	struct verdict_slot *first = NULL;
	for (int i = 0; i < VERDICT_SLOTS; i++)
		if (steps->slot[i].step >= 0 && (first == NULL || steps->slot[i].step < first->step))
			first = &steps->slot[i];
	return first;
}

/* Returns the slot of a step that has not ended; NULL where all slots are those of steps before it. A step far ahead,
 * of a rank that is mistaken, gives way to one that is not. */
static struct verdict_slot *slot_of(struct wlb_verdict_detector *detector, int64_t step)
{
	struct verdict_steps *steps = &detector->steps;
	struct verdict_slot *slots = steps->slot, *free_slot = NULL, *newest = &slots[0];
	if (slots[steps->filled].step == step)
		return &slots[steps->filled];
	for (int i = 0; i < VERDICT_SLOTS; i++) {
		if (slots[i].step == step) {
			steps->filled = i;
			return &slots[i];
		}
		if (slots[i].step < 0)
			free_slot = &slots[i];
		if (slots[i].step > newest->step)
			newest = &slots[i];
	}
	if (free_slot == NULL && newest->step <= step)
		return NULL;
	steps->collected += free_slot != NULL;
	free_slot = free_slot != NULL ? free_slot : newest;
	clear_slot(free_slot, &detector->world, step);
	steps->filled = (int32_t)(free_slot - slots);
	return free_slot;
}

/* The run goes on from a step that does not follow the collected steps. */
static void begin_before(struct wlb_verdict_detector *detector, int64_t step)
{
	struct verdict_steps *steps = &detector->steps;
	steps->last = step - 1;
	steps->elsewhere = 0;
	steps->collected = 0;
	for (int i = 0; i < VERDICT_SLOTS; i++)
		clear_slot(&steps->slot[i], &detector->world, -1);
}

/* Returns the first step that is collected, where it has ended: all have reported it, or half of them a step
 * STEPS_LATER. Else NULL. */
static struct verdict_slot *ended_slot(struct wlb_verdict_detector *detector)
{
	struct verdict_steps *steps = &detector->steps;
	struct verdict_slot *first = first_slot(steps);
	if (first == NULL || first->reported == detector->world.ranks)
		return first;
	for (int i = 0; i < VERDICT_SLOTS; i++)
		if (2 * steps->slot[i].reported >= detector->world.ranks &&
		    count_before(steps, steps->slot[i].step) >= STEPS_LATER)
			return first;
	return NULL;
}

int wlb_verdict_take_step(struct wlb_verdict_detector *detector, const struct wlb_verdict_step *step,
                          struct wlb_verdict_error *error)
{
	struct verdict_steps *steps = &detector->steps;
	if (check_step(detector, step, error) < 0)
		return -1;
	struct verdict_slot *slot = step->step > steps->last ? slot_of(detector, step->step) : NULL;
	if (slot == NULL) {
		/* A step that is not collected is late, or of a rank that is mistaken. Where no report fits any more,
		 * the run itself is elsewhere. */
		if (++steps->elsewhere <= detector->world.ranks + VERDICT_SLOTS)
			return 0;
		begin_before(detector, step->step);
		slot = slot_of(detector, step->step);
	}
	steps->elsewhere = 0;
	if (slot->has[step->rank])
		return 0;
	fill_slot(detector, step, slot);
	/* Until the last report of a step, nothing has ended where no step is STEPS_LATER. */
	if (slot->reported < detector->world.ranks && steps->collected <= STEPS_LATER)
		return 0;
	while ((slot = ended_slot(detector)) != NULL) {
		judge_step(detector, slot);
		steps->last = slot->step;
		clear_slot(slot, &detector->world, -1);
		steps->collected--;
	}
	return 0;
}
