#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 67, MOST_PARTS = 5 };

static const double SCALE = 0.25;

static const int64_t VOCABS[] = {1, 3, 17, 257};

/* Every seventh token has no target. */
static void fill_targets(int32_t *targets, int64_t vocab)
{
	for (int t = 0; t < TOKENS; t++)
		targets[t] = t % 7 == 3 ? -1 : (int32_t)(t * t % vocab);
}

static double reference_row(double *logits, int32_t target, int64_t vocab, double scale)
{
	double sum = 0;
	for (int64_t i = 0; i < vocab; i++)
		sum += exp(logits[i]);
	double loss = log(sum) - logits[target];
	for (int64_t i = 0; i < vocab; i++)
		logits[i] = (exp(logits[i]) / sum - (i == target)) * scale;
	return loss;
}

/* Both operations of one rank that holds the whole vocabulary. */
static void cross_entropy_of(struct wlb_device *device, double *loss_sum, void *logits, const int32_t *targets,
                             int64_t tokens, int64_t vocab, double scale, double softcap)
{
	void *statistics = to_array(device, NULL, (size_t)(3 * tokens));
	device->ops->cross_entropy_statistics(device, statistics, logits, targets, tokens, 0, vocab);
	device->ops->cross_entropy_gradient(device, loss_sum, logits, statistics, 1, targets, tokens, 0, vocab, scale,
	                                    softcap);
	RELEASE(device, statistics);
}

static void cross_entropy(struct wlb_device *device, double *loss_sum, void *logits, const int32_t *targets,
                          int64_t tokens, int64_t vocab, double scale)
{
	cross_entropy_of(device, loss_sum, logits, targets, tokens, vocab, scale, 0);
}

/* The logits of the slice [first, first + count) as a rank holds them. */
static double *slice_of(const double *logits, int64_t vocab, int64_t first, int64_t count)
{
	double *slice = random_numbers((size_t)(TOKENS * count), 0);
	for (int t = 0; t < TOKENS; t++)
		memcpy(slice + t * count, logits + t * vocab + first, (size_t)count * sizeof(*slice));
	return slice;
}

/* Where slice `part` of `parts` begins: the later ones are larger, and the first are empty where vocab is small. */
static int64_t slice_begin(int64_t vocab, int part, int parts)
{
	return vocab * part * (part + 1) / (parts * (parts + 1));
}

/* Cross-entropy as `parts` ranks compute it, one after the other on one device; `want` is the gradient of the whole.
 * Returns the loss, to which each rank comes. */
static double check_slices(struct wlb_device *device, const double *logits, const double *want, int64_t vocab,
                           int parts)
{
	void *slices[MOST_PARTS];
	int32_t targets[TOKENS];
	fill_targets(targets, vocab);
	size_t row_bytes = 3 * wlb_dtype_bytes(device->compute);
	char *statistics = device->ops->alloc(device, (size_t)(parts * TOKENS) * row_bytes, NULL);
	double *loss_sum = device->ops->alloc(device, sizeof(double), NULL), loss = 0;
	for (int part = 0; part < parts; part++) {
		int64_t first = slice_begin(vocab, part, parts), count = slice_begin(vocab, part + 1, parts) - first;
		double *slice = slice_of(logits, vocab, first, count);
		slices[part] = to_array(device, slice, (size_t)(TOKENS * count));
		device->ops->cross_entropy_statistics(device, statistics + (size_t)(part * TOKENS) * row_bytes,
		                                      slices[part], targets, TOKENS, first, count);
		check_close(device, "logits after statistics", slices[part], slice, (size_t)(TOKENS * count), 1e-6);
		free(slice);
	}
	for (int part = 0; part < parts; part++) {
		int64_t first = slice_begin(vocab, part, parts), count = slice_begin(vocab, part + 1, parts) - first;
		double *slice = slice_of(want, vocab, first, count), start = 5, before = loss;
		device->ops->to_device(device, NULL, loss_sum, &start, sizeof(start));
		device->ops->cross_entropy_gradient(device, loss_sum, slices[part], statistics, parts, targets, TOKENS,
		                                    first, count, SCALE, 0);
		check_close(device, "d_logits", slices[part], slice, (size_t)(TOKENS * count), 2e-6);
		device->ops->to_host(device, &loss, loss_sum, sizeof(loss));
		assert_true(part == 0 || loss == before);
		free(slice);
		RELEASE(device, slices[part]);
	}
	RELEASE(device, statistics, loss_sum);
	return loss - 5;
}

static void check_vocab(struct wlb_device *device, int64_t vocab)
{
	static const int parts[] = {1, 2, 3, MOST_PARTS};
	int32_t targets[TOKENS];
	fill_targets(targets, vocab);
	size_t n = (size_t)(TOKENS * vocab);
	double *logits = random_numbers(n, 1), *gradient = random_numbers(n, 1), want = 0;
	for (size_t i = 0; i < n; i++)
		gradient[i] = logits[i] *= 20;
	for (int t = 0; t < TOKENS; t++) {
		if (targets[t] >= 0)
			want += reference_row(gradient + t * vocab, targets[t], vocab, SCALE);
		else
			memset(gradient + t * vocab, 0, (size_t)vocab * sizeof(*gradient));
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		double loss = check_slices(device, logits, gradient, vocab, parts[i]);
		double tolerance = device->compute == WLB_FLOAT32 ? 1e-6 : 1e-12;
		if (!(fabs(loss - want) <= tolerance * (1 + want)))
			fail_msg("loss of %d slices of %d: got %.17g, want %.17g", parts[i], (int)vocab, loss, want);
	}
	free(logits), free(gradient);
}

static void check_cross_entropy(struct wlb_device *device)
{
	for (size_t i = 0; i < sizeof(VOCABS) / sizeof(VOCABS[0]); i++)
		check_vocab(device, VOCABS[i]);
}

static void test_cross_entropy(void **state)
{
	(void)state;
	for_each_device(check_cross_entropy);
}

struct run {
	struct wlb_device *device;
	double softcap;
	double *logits, *scratch;
	int32_t targets[TOKENS];
};

static double run_loss(void *context)
{
	struct run *r = context;
	double loss = 0;
	memcpy(r->scratch, r->logits, sizeof(double) * TOKENS * 17);
	if (r->softcap > 0)
		r->device->ops->softcap(r->device, r->scratch, r->softcap, TOKENS * 17);
	cross_entropy_of(r->device, &loss, r->scratch, r->targets, TOKENS, 17, 1, r->softcap);
	return loss;
}

static void check_gradient(double softcap)
{
	struct run r = {.device = open_double(2), .softcap = softcap};
	r.logits = random_numbers(TOKENS * 17, 1), r.scratch = random_numbers(TOKENS * 17, 1);
	fill_targets(r.targets, 17);
	run_loss(&r);
	double *gradient = random_numbers(TOKENS * 17, 1);
	memcpy(gradient, r.scratch, sizeof(double) * TOKENS * 17);
	check_differences("d_logits", &(struct difference_check){run_loss, &r, r.logits, gradient, TOKENS * 17});
	free(r.logits), free(r.scratch), free(gradient);
	wlb_device_close(r.device);
}

static void test_gradient(void **state)
{
	(void)state;
	check_gradient(0);
}

/* Of logits before the soft cap, which it bends strongly. */
static void test_gradient_behind_a_soft_cap(void **state)
{
	(void)state;
	check_gradient(0.75);
}

/* Logits far beyond what exp can hold: the loss is their difference. */
static void test_large_logits(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	double logits[3] = {-5000, 4000, 1000}, loss = 0;
	const int32_t target = 0;
	cross_entropy(device, &loss, logits, &target, 1, 3, 1);
	assert_true(loss == 9000);
	assert_true(logits[0] == -1 && logits[1] == 1 && logits[2] == 0);
	wlb_device_close(device);
}

/* A number that is none must reach the loss, wherever it stands: it is how a broken run is noticed. */
static void check_nan(struct wlb_device *device)
{
	double values[40] = {0}, loss = 0;
	const int32_t target = 3;
	for (int at = 0; at < 40; at += 13) {
		values[at] = NAN;
		void *logits = to_array(device, values, 40);
		values[at] = 0;
		loss = 0;
		cross_entropy(device, &loss, logits, &target, 1, 40, 1);
		assert_true(isnan(loss));
		RELEASE(device, logits);
	}
}

static void test_nan(void **state)
{
	(void)state;
	for_each_device(check_nan);
}

/* The three numbers of a row, slice by slice; a row without a target has none, and its gradient is 0 whatever stands
 * there. */
static void test_statistics(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	const int32_t targets[] = {4, -1};
	double logits[] = {-901, -899, -900, NAN, 5, 6}, statistics[] = {9, 9, 9, 9, 9, 9};
	device->ops->cross_entropy_statistics(device, statistics, logits, targets, 2, 3, 3);
	assert_true(statistics[0] == -899 && statistics[2] == -899);
	assert_true(fabs(statistics[1] - (1 + exp(-1) + exp(-2))) < 1e-15);
	for (int i = 3; i < 6; i++)
		assert_true(statistics[i] == 0);
	device->ops->cross_entropy_statistics(device, statistics, logits, targets, 1, 0, 3);
	assert_true(statistics[0] == -899 && statistics[2] == 0);
	device->ops->cross_entropy_gradient(device, NULL, logits, statistics, 1, targets, 2, 3, 3, 1, 0);
	for (int i = 3; i < 6; i++)
		assert_true(logits[i] == 0);
	wlb_device_close(device);
}

/* Slices whose largest logits are far apart in float: each share is scaled to the largest of all. */
static void check_far_slices(struct wlb_device *device)
{
	double values[] = {-30, 60, 61}, shares[] = {-30, 1, -30, 61, 1 + exp(-1), 0}, loss = 0;
	const int32_t target = 0;
	void *logits = to_array(device, values, 3), *statistics = to_array(device, shares, 6);
	device->ops->cross_entropy_gradient(device, &loss, logits, statistics, 2, &target, 1, 0, 3, 1, 0);
	const double sum = 1 + exp(-1), want[] = {-1, exp(-1) / sum, 1 / sum};
	check_close(device, "d_logits", logits, want, 3, 1e-6);
	assert_true(fabs(loss - (91 + log(sum))) < (device->compute == WLB_FLOAT32 ? 1e-5 : 1e-12));
	RELEASE(device, logits, statistics);
}

static void test_far_slices(void **state)
{
	(void)state;
	for_each_device(check_far_slices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cross_entropy),
	                                   cmocka_unit_test(test_gradient),
	                                   cmocka_unit_test(test_gradient_behind_a_soft_cap),
	                                   cmocka_unit_test(test_large_logits),
	                                   cmocka_unit_test(test_nan),
	                                   cmocka_unit_test(test_statistics),
	                                   cmocka_unit_test(test_far_slices)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
