#include "libverdict/shift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libverdict/quantile.h"

/* Of the values of a step that is the common one: below the median, so that half of the ranks, which are slow, do not
 * move it. */
static const double common_share = 0.3;
/* The first scale of the noise, and how many steps' worth of evidence it counts for. */
static const double first_noise = 0.05;
enum { FIRST_NOISE_STEPS = 8 };
/* Constants are learnt as a mean of so many steps, in which their set is not tested, and then change slowly. */
enum {
	LEARN_STEPS = 16,
	SLOW_CHANGE_STEPS = 256,
	NOISE_STEPS = 64,
	MEAN_STEPS = 50,
	BLOCK_STEPS = 8,
	STRETCH_BLOCKS = 8
};
static const double first_stretch = 2.0, most_stretch = 8.0;
/* Values beyond are no shifts but mistakes: a hundred times. */
static const double most_shift = 4.6;
/* No step adds more than this part of the threshold, so that a few steps with an outlier each are no alarm. */
static const double most_of_alarm = 1.0 / 6.0;
/* Values further above the shift that is looked for than so many times the noise count no more than one there. */
static const double plausible_noise = 3.0;
/* An entity whose sum is above this part of the threshold, as it is after one step of a great shift, is not counted in
 * the noise: where half of all are slow, their shift would pass for it. */
static const double suspect_of_alarm = 1.0 / 8.0;
/* Where another entity of the same node is slow, one above this part of the threshold is likely slow too. */
static const double likely_of_alarm = 0.25;
/* One that is below this part is not; between, it is not decided yet. */
static const double undecided_of_alarm = 0.05;
/* In many steps the sum also reaches the threshold by shifts of little more than half of the one that is looked for.
 * The test begins anew where the mean shift is less than this part of it, by more than so many times the mean's error.
 */
static const double least_of_slow = 0.9;
static const double sure_errors = 3.0;
/* An entity is no longer slow when the sum for the way back reaches this. */
static const double recovered = 12.0;

int verdict_shift_init(struct verdict_shift *shift, const struct verdict_shift_limits *limits, int32_t count,
                       const int32_t *set_of, int32_t sets)
{
	size_t entities = (size_t)count + 1;
	*shift = (struct verdict_shift){
		.limits = *limits, .count = count, .sets = sets, .noise = first_noise, .stretch = first_stretch};
	shift->alarm = log((count > 0 ? count : 1) * limits->steps / limits->alarms);
	shift->set_of = calloc(entities, sizeof(*shift->set_of));
	shift->constant = calloc((size_t)sets + 1, sizeof(*shift->constant));
	shift->learnt = calloc((size_t)sets + 1, sizeof(*shift->learnt));
	shift->rest = calloc(entities, sizeof(*shift->rest));
	shift->block = calloc(entities, sizeof(*shift->block));
	shift->length = calloc(entities, sizeof(*shift->length));
	shift->mean = calloc(entities, sizeof(*shift->mean));
	shift->sum = calloc(entities, sizeof(*shift->sum));
	shift->back = calloc(entities, sizeof(*shift->back));
	shift->since_step = calloc(entities, sizeof(*shift->since_step));
	shift->slow_at = calloc(entities, sizeof(*shift->slow_at));
	shift->slow = calloc(entities, sizeof(*shift->slow));
	shift->scratch = calloc(entities, sizeof(*shift->scratch));
	if (shift->set_of == NULL || shift->constant == NULL || shift->learnt == NULL || shift->rest == NULL ||
	    shift->block == NULL || shift->length == NULL || shift->mean == NULL || shift->sum == NULL ||
	    shift->back == NULL || shift->since_step == NULL || shift->slow_at == NULL || shift->slow == NULL ||
	    shift->scratch == NULL)
		return -1;
	memcpy(shift->set_of, set_of, (size_t)count * sizeof(*set_of));
	for (int32_t i = 0; i < count; i++)
		shift->mean[i] = NAN;
	return verdict_lists_build(&shift->of_set, set_of, count, sets);
}

void verdict_shift_free(struct verdict_shift *shift)
{
	verdict_lists_free(&shift->of_set);
	free(shift->set_of);
	free(shift->constant);
	free(shift->learnt);
	free(shift->rest);
	free(shift->block);
	free(shift->length);
	free(shift->mean);
	free(shift->sum);
	free(shift->back);
	free(shift->since_step);
	free(shift->slow_at);
	free(shift->slow);
	free(shift->scratch);
}

static double clamp(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

/* Puts the values, less the constants of their sets, into the scratch: only values of sets whose constant is known, or,
 * where `known` is 0, all values. Returns how many these are. */
static int32_t gather(struct verdict_shift *shift, const double *values, int known)
{
	int32_t found = 0;
	for (int32_t i = 0; i < shift->count; i++) {
		int32_t set = shift->set_of[i];
		if (isfinite(values[i]) && (!known || shift->learnt[set] > 0))
			shift->scratch[found++] = values[i] - shift->constant[set];
	}
	return found;
}

/* Returns what the values of this step have in common, or NaN where there are none. A set that reports for the first
 * time, of which nothing is known, does not tell what is common. */
static double common_of(struct verdict_shift *shift, const double *values)
{
	int32_t found = gather(shift, values, 1);
	if (found == 0)
		found = gather(shift, values, 0);
	if (found == 0)
		return NAN;
	return shift->limits.common ? verdict_quantile(shift->scratch, found, common_share) : 0.0;
}

/* Moves the constant of each set towards the median of its entities. */
static void learn_constants(struct verdict_shift *shift, const double *values, double common)
{
	for (int32_t s = 0; s < shift->sets; s++) {
		int32_t found = 0;
		for (int32_t k = shift->of_set.first[s]; k < shift->of_set.first[s + 1]; k++)
			if (isfinite(values[shift->of_set.list[k]]))
				shift->scratch[found++] = values[shift->of_set.list[k]] - common;
		if (found == 0)
			continue;
		double change = verdict_quantile(shift->scratch, found, 0.5) - shift->constant[s];
		if (++shift->learnt[s] <= LEARN_STEPS)
			shift->constant[s] += change / (double)shift->learnt[s];
		else
			shift->constant[s] += clamp(change, -shift->noise, shift->noise) / SLOW_CHANGE_STEPS;
	}
}

/* 1 where the sum of an entity is above a part of the threshold, or was above all of it. */
static int is_above(const struct verdict_shift *shift, int32_t i, double part)
{
	return shift->slow[i] || shift->sum[i] > shift->alarm * part;
}

int verdict_shift_is_suspect(const struct verdict_shift *shift, int32_t entity)
{
	return is_above(shift, entity, suspect_of_alarm);
}

int verdict_shift_is_likely(const struct verdict_shift *shift, int32_t entity)
{
	return is_above(shift, entity, likely_of_alarm);
}

/* Sets the rest of each value, and puts the rests that may be noise, of entities that are not slow, into the scratch.
 * Returns how many these are. */
static int32_t subtract(struct verdict_shift *shift, const double *values, double common)
{
	int32_t found = 0;
	for (int32_t i = 0; i < shift->count; i++) {
		double rest = values[i] - common - shift->constant[shift->set_of[i]];
		shift->rest[i] = isfinite(values[i]) ? rest : NAN;
		if (isfinite(shift->rest[i]) && !verdict_shift_is_suspect(shift, i))
			shift->scratch[found++] = rest;
	}
	return found;
}

/* Returns the median of the values that are not slow, which are in the scratch: where many are slow, what all seem to
 * have in common is less than what the other values have. */
static double centre_of(struct verdict_shift *shift, int32_t found)
{
	return shift->limits.common && found > 0 ? verdict_quantile(shift->scratch, found, 0.5) : 0.0;
}

/* Measures the scale of the noise from this step's values, which are in the scratch. */
static void measure_noise(struct verdict_shift *shift, int32_t found)
{
	if (found < 2)
		return;
	for (int32_t i = 0; i < found; i++)
		shift->scratch[i] = fabs(shift->scratch[i]);
	/* The median absolute deviation of a normal distribution is 1 / 1.4826 of its standard deviation. */
	double scale = 1.4826 * verdict_quantile(shift->scratch, found, 0.5);
	double steps = (double)shift->steps + FIRST_NOISE_STEPS;
	shift->noise += (scale - shift->noise) / (steps < NOISE_STEPS ? steps : NOISE_STEPS);
	if (shift->noise < shift->limits.floor)
		shift->noise = shift->limits.floor;
}

int verdict_shift_is_undecided(const struct verdict_shift *shift, int32_t entity)
{
	return !verdict_shift_is_likely(shift, entity) && is_above(shift, entity, undecided_of_alarm);
}

/* Measures by what factor the variance of a mean of successive steps exceeds the variance of a mean of independent
 * steps. The scale of the means of blocks of steps shows the correlation over all distances. */
static void measure_stretch(struct verdict_shift *shift, const double *rest)
{
	double most = 3.0 * shift->noise;
	for (int32_t i = 0; i < shift->count; i++)
		shift->block[i] += isfinite(rest[i]) ? clamp(rest[i], -most, most) : NAN;
	if (shift->steps % BLOCK_STEPS != 0)
		return;
	int32_t found = 0;
	for (int32_t i = 0; i < shift->count; i++) {
		if (isfinite(shift->block[i]) && !verdict_shift_is_suspect(shift, i))
			shift->scratch[found++] = fabs(shift->block[i]) / BLOCK_STEPS;
		shift->block[i] = 0.0;
	}
	if (found < 2)
		return;
	double scale = 1.4826 * verdict_quantile(shift->scratch, found, 0.5) / shift->noise;
	double blocks = (double)(shift->steps / BLOCK_STEPS) + 1.0;
	shift->stretch += (clamp(BLOCK_STEPS * scale * scale, 1.0, most_stretch) - shift->stretch) /
	                  (blocks < STRETCH_BLOCKS ? blocks : STRETCH_BLOCKS);
}

static double middle_of(const struct verdict_shift *shift)
{
	return (shift->limits.usual + shift->limits.slow) / 2.0;
}

/* 1 where the mean shift of an entity is surely less than the one that is looked for. */
static int is_less(const struct verdict_shift *shift, int32_t i)
{
	double error = shift->noise * sqrt(shift->stretch / shift->length[i]);
	return shift->mean[i] + sure_errors * error < least_of_slow * shift->limits.slow;
}

/* 1 where a slow entity is slow no more: by the sum for the way back, or since its mean shift is one that is no fault.
 * Where the noise has become as great as the shift, the sum would take thousands of steps. */
static int has_recovered(const struct verdict_shift *shift, int32_t i)
{
	return shift->back[i] >= recovered || (shift->length[i] == MEAN_STEPS && shift->mean[i] < shift->limits.usual);
}

static void test_entity(struct verdict_shift *shift, int32_t i, double rest, double centre, double slope, int64_t step)
{
	double middle = middle_of(shift), most = shift->alarm * most_of_alarm;
	double top = shift->limits.slow + plausible_noise * shift->noise;
	double gain = clamp(slope * ((rest < top ? rest : top) - middle), -most, most);
	if (shift->sum[i] <= 0.0 || isnan(shift->mean[i])) {
		shift->since_step[i] = step;
		shift->length[i] = 0;
		shift->mean[i] = 0.0;
	}
	shift->length[i] += shift->length[i] < MEAN_STEPS;
	shift->mean[i] += (clamp(rest - centre, -most_shift, most_shift) - shift->mean[i]) / shift->length[i];
	if (!shift->slow[i]) {
		shift->sum[i] = shift->sum[i] + gain > 0.0 ? shift->sum[i] + gain : 0.0;
		if (shift->sum[i] < shift->alarm)
			return;
		if (is_less(shift, i)) {
			shift->sum[i] = 0.0;
			return;
		}
		shift->slow[i] = 1;
		shift->slow_at[i] = shift->steps;
		shift->back[i] = 0.0;
		shift->slow_count++;
		return;
	}
	shift->sum[i] = shift->sum[i] + (gain > 0.0 ? gain : 0.0);
	shift->back[i] = shift->back[i] - gain > 0.0 ? shift->back[i] - gain : 0.0;
	if (has_recovered(shift, i)) {
		shift->slow[i] = 0;
		shift->sum[i] = 0.0;
		shift->slow_count--;
	}
}

int verdict_shift_step(struct verdict_shift *shift, const double *values, int64_t step)
{
	double common = common_of(shift, values);
	if (isnan(common))
		return 0;
	shift->common = common;
	learn_constants(shift, values, common);
	const double *rest = shift->rest;
	shift->steps++;
	int32_t found = subtract(shift, values, common);
	double centre = centre_of(shift, found);
	measure_noise(shift, found);
	measure_stretch(shift, rest);
	double variance = shift->noise * shift->noise * shift->stretch;
	double slope = (shift->limits.slow - shift->limits.usual) / variance;
	for (int32_t i = 0; i < shift->count; i++) {
		if (isfinite(rest[i]) && shift->learnt[shift->set_of[i]] > LEARN_STEPS)
			test_entity(shift, i, rest[i], centre, slope, step);
	}
	return 1;
}

double verdict_shift_certainty(const struct verdict_shift *shift, int32_t entity)
{
	double chance = shift->limits.alarms * exp(shift->alarm - shift->sum[entity]);
	return 1.0 - (chance < 1.0 ? chance : 1.0);
}
