/* Verdicts of ranks whose loss or gradient is not finite, or far off that of their peers. */
#include <math.h>
#include <stdio.h>

#include "libverdict/kinds.h"
#include "libverdict/quantile.h"
#include "libverdict/verdicts.h"

enum { LOSS, GRADIENT, KINDS };
/* A value is far off where it differs from the median of its peers by so many times what they usually differ, in so
 * many successive steps; documents alone make single steps differ much. */
static const double far_times = 12.0;
enum { FAR_STEPS = 3, LEAST_PEERS = 4, FINE_STEPS = 10 };
/* Peers differ by at least this share of their median, so that equal ones have a scale. */
static const double least_scale = 0.005;
static const double scale_gain = 1.0 / 16.0;

static int has(const struct verdict_slot *slot, int32_t r, int kind)
{
	return slot->has[r] && (slot->has_value[r] >> kind & 1);
}

/* Gradients are compared by their logarithm, since their norms spread over orders of magnitude. */
static double measure(int kind, double value)
{
	return kind == GRADIENT ? log(fmax(value, 1e-30)) : value;
}

static void mark(struct verdict_values *values, int32_t r, int bad, const struct verdict_slot *slot, double value,
                 double peers)
{
	if (bad) {
		values->bad_count += values->bad_step[r] < 0;
		if (values->bad_step[r] < 0) {
			values->bad_step[r] = slot->step;
			values->bad_value[r] = value;
			values->peers[r] = peers;
		}
		values->fine[r] = 0;
	} else if (values->bad_step[r] >= 0 && ++values->fine[r] >= FINE_STEPS) {
		values->bad_step[r] = -1;
		values->bad_count--;
	}
}

/* Marks the ranks whose value is not finite while the values of most others are. Where no value is finite the model
 * diverges, and no rank is at fault. Returns 0 where most are not finite. */
static int mark_not_finite(struct wlb_verdict_detector *detector, const struct verdict_slot *slot, int kind)
{
	int32_t known = 0, not_finite = 0;
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		known += has(slot, r, kind);
		not_finite += has(slot, r, kind) && !isfinite(slot->value[kind][r]);
	}
	if (2 * not_finite > known || known < 2)
		return 0;
	for (int32_t r = 0; not_finite > 0 && r < detector->world.ranks; r++)
		if (has(slot, r, kind) && !isfinite(slot->value[kind][r]))
			mark(&detector->values[kind], r, 1, slot, slot->value[kind][r], NAN);
	return 1;
}

/* In a set of few peers a value that is finite is fine. */
static void mark_finite(struct wlb_verdict_detector *detector, const struct verdict_slot *slot, int kind, int32_t set)
{
	const struct verdict_lists *of_set = &detector->compute.of_set;
	for (int32_t i = of_set->first[set]; i < of_set->first[set + 1]; i++) {
		int32_t r = of_set->list[i];
		if (has(slot, r, kind) && isfinite(slot->value[kind][r]))
			mark(&detector->values[kind], r, 0, slot, slot->value[kind][r], NAN);
	}
}

/* Compares the ranks of a set of peers. Returns the scale of their differences, 0 where they are too few. */
static double compare_peers(struct wlb_verdict_detector *detector, const struct verdict_slot *slot, int kind,
                            int32_t set)
{
	const struct verdict_lists *of_set = &detector->compute.of_set;
	struct verdict_values *values = &detector->values[kind];
	int32_t found = 0;
	for (int32_t i = of_set->first[set]; i < of_set->first[set + 1]; i++) {
		int32_t r = of_set->list[i];
		if (has(slot, r, kind) && isfinite(slot->value[kind][r]))
			detector->scratch[found++] = measure(kind, slot->value[kind][r]);
	}
	if (found < LEAST_PEERS) {
		mark_finite(detector, slot, kind, set);
		return 0.0;
	}
	double middle = verdict_quantile(detector->scratch, found, 0.5);
	for (int32_t i = 0; i < found; i++)
		detector->scratch[i] = fabs(detector->scratch[i] - middle);
	double scale = 1.4826 * verdict_quantile(detector->scratch, found, 0.5);
	double usual = fmax(fmax(scale, values->scale), least_scale * fmax(1.0, fabs(middle)));
	for (int32_t i = of_set->first[set]; i < of_set->first[set + 1]; i++) {
		int32_t r = of_set->list[i];
		if (!has(slot, r, kind) || !isfinite(slot->value[kind][r]))
			continue;
		int far = fabs(measure(kind, slot->value[kind][r]) - middle) > far_times * usual;
		values->off[r] = far ? values->off[r] + 1 : 0;
		mark(values, r, values->off[r] >= FAR_STEPS, slot, slot->value[kind][r],
		     kind == GRADIENT ? exp(middle) : middle);
	}
	return scale;
}

void verdict_loss_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot)
{
	for (int kind = LOSS; kind < KINDS; kind++) {
		struct verdict_values *values = &detector->values[kind];
		if (!mark_not_finite(detector, slot, kind))
			continue;
		double sum = 0.0;
		int32_t sets = 0;
		for (int32_t s = 0; s < detector->compute.sets; s++) {
			double scale = compare_peers(detector, slot, kind, s);
			sum += scale;
			sets += scale > 0.0;
		}
		if (sets > 0)
			values->scale += (values->scale > 0.0 ? scale_gain : 1.0) * (sum / sets - values->scale);
	}
}

void verdict_loss_find(struct wlb_verdict_detector *detector)
{
	static const char *const names[KINDS] = {"loss", "gradient norm"};
	for (int kind = LOSS; kind < KINDS; kind++) {
		const struct verdict_values *values = &detector->values[kind];
		for (int32_t r = 0; values->bad_count > 0 && r < detector->world.ranks; r++) {
			if (values->bad_step[r] < 0)
				continue;
			int finite = isfinite(values->bad_value[r]);
			struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_BAD_VALUES, WLB_VERDICT_CONFIRMED);
			verdict_add_rank(&verdict, r);
			verdict.since_step = values->bad_step[r];
			verdict.since_s = detector->time.now_s;
			verdict.certainty = finite ? 0.9 : 0.99;
			int length = snprintf(verdict.evidence, sizeof(verdict.evidence),
			                      "the %s of rank %d (node %s) was %g in step %lld", names[kind], r,
			                      detector->world.node_name[detector->world.node_of[r]],
			                      values->bad_value[r], (long long)values->bad_step[r]);
			if (finite)
				snprintf(verdict.evidence + length, sizeof(verdict.evidence) - (size_t)length,
				         ", far off the median of its peers, %g, for %d steps", values->peers[r],
				         FAR_STEPS);
			else
				snprintf(verdict.evidence + length, sizeof(verdict.evidence) - (size_t)length,
				         "; those of most other ranks were finite");
			verdict_add(detector, &verdict);
		}
	}
}
