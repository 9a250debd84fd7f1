#include "libverdict/fixed_time.h"

#include <math.h>
#include <stdlib.h>

#include "libverdict/quantile.h"

/* The share that is expected without evidence is 0, give or take this. */
static const double usual_share = 0.3;
/* Work that is so many times that of the peers, or theirs of it, is a mistake and teaches nothing. */
static const double most_ratio = 64.0;
/* What a step has taught is forgotten in so many further ones. */
enum { MEMORY_STEPS = 256 };

int verdict_fixed_time_init(struct verdict_fixed_time *fixed, int32_t ranks, int32_t sets)
{
	fixed->share = calloc((size_t)sets + 1, sizeof(*fixed->share));
	fixed->product = calloc((size_t)sets + 1, sizeof(*fixed->product));
	fixed->square = calloc((size_t)sets + 1, sizeof(*fixed->square));
	fixed->scratch = calloc((size_t)ranks + 1, sizeof(*fixed->scratch));
	return fixed->share == NULL || fixed->product == NULL || fixed->square == NULL || fixed->scratch == NULL ? -1
	                                                                                                         : 0;
}

void verdict_fixed_time_free(struct verdict_fixed_time *fixed)
{
	free(fixed->share);
	free(fixed->product);
	free(fixed->square);
	free(fixed->scratch);
}

static int is_known(const struct verdict_slot *slot, int32_t r)
{
	return slot->has[r] && slot->computed_s[r] > 0.0 && slot->work[r] > 0.0;
}

/* Ranks of a set in a step. */
struct peers {
	const int32_t *list;
	int32_t count;
	double work;   /* their median */
	double time_s; /* of that work, the median of what their computations say */
};

/* Returns what a rank is expected to take, over the time of the median work. */
static double expected(const struct peers *peers, double share, double work)
{
	return share + (1.0 - share) * work / peers->work;
}

/* Sets work and time of the peers. Returns 0 where none is known. */
static int find_medians(struct verdict_fixed_time *fixed, double share, const struct verdict_slot *slot,
                        struct peers *peers)
{
	int32_t found = 0;
	for (int32_t i = 0; i < peers->count; i++)
		if (is_known(slot, peers->list[i]))
			fixed->scratch[found++] = slot->work[peers->list[i]];
	if (found == 0)
		return 0;
	peers->work = verdict_quantile(fixed->scratch, found, 0.5);
	found = 0;
	for (int32_t i = 0; i < peers->count; i++) {
		int32_t r = peers->list[i];
		if (is_known(slot, r))
			fixed->scratch[found++] = slot->computed_s[r] / expected(peers, share, slot->work[r]);
	}
	peers->time_s = verdict_quantile(fixed->scratch, found, 0.5);
	return 1;
}

/* Both are over what is expected of the rank, so that all ranks count alike. No share explains more than the work that
 * a rank lacks; what it takes beyond is its own. */
static void learn(struct verdict_fixed_time *fixed, const struct verdict_shift *test, int32_t set,
                  const struct verdict_slot *slot, const struct peers *peers)
{
	double share = fixed->share[set], least = test->noise / usual_share;
	fixed->product[set] *= 1.0 - 1.0 / MEMORY_STEPS;
	fixed->square[set] *= 1.0 - 1.0 / MEMORY_STEPS;
	for (int32_t i = 0; i < peers->count; i++) {
		int32_t r = peers->list[i];
		if (!is_known(slot, r) || verdict_shift_is_suspect(test, r))
			continue;
		double work = slot->work[r] / peers->work, usual = expected(peers, share, slot->work[r]);
		if (work > most_ratio || work < 1.0 / most_ratio)
			continue;
		double lacks = (1.0 - work) / usual, longer = (slot->computed_s[r] / peers->time_s - work) / usual;
		longer = fmax(longer, fmin(0.0, lacks) - test->noise);
		longer = fmin(longer, fmax(0.0, lacks) + test->noise);
		fixed->product[set] += lacks * longer;
		fixed->square[set] += lacks * lacks;
	}
	share = fixed->product[set] / (fixed->square[set] + least * least);
	fixed->share[set] = fmin(fmax(share, 0.0), 1.0);
}

void verdict_fixed_time_step(struct verdict_fixed_time *fixed, const struct verdict_shift *test,
                             const struct verdict_slot *slot, double *values)
{
	for (int32_t set = 0; set < test->sets; set++) {
		int32_t first = test->of_set.first[set];
		struct peers peers = {.list = test->of_set.list + first, .count = test->of_set.first[set + 1] - first};
		int known = find_medians(fixed, fixed->share[set], slot, &peers);
		if (known)
			learn(fixed, test, set, slot, &peers);
		for (int32_t i = 0; i < peers.count; i++) {
			int32_t r = peers.list[i];
			values[r] = known && is_known(slot, r)
			                    ? log(slot->computed_s[r] /
			                          (peers.work * expected(&peers, fixed->share[set], slot->work[r])))
			                    : NAN;
		}
	}
}
