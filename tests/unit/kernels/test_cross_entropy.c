#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 67 };

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

static void check_vocab(struct wlb_device *device, int64_t vocab)
{
	int32_t targets[TOKENS];
	fill_targets(targets, vocab);
	size_t n = (size_t)(TOKENS * vocab);
	double *logits = random_numbers(n, 1);
	for (size_t i = 0; i < n; i++)
		logits[i] *= 20;
	void *la = to_array(device, logits, n);
	double *loss_sum = device->ops->alloc(device, sizeof(double), NULL);
	double loss = 5, want = 5;
	device->ops->to_device(device, loss_sum, &loss, sizeof(loss));
	for (int t = 0; t < TOKENS; t++) {
		if (targets[t] >= 0)
			want += reference_row(logits + t * vocab, targets[t], vocab, 0.25);
		else
			memset(logits + t * vocab, 0, (size_t)vocab * sizeof(*logits));
	}
	device->ops->cross_entropy(device, loss_sum, la, targets, TOKENS, vocab, 0.25);
	check_close(device, "d_logits", la, logits, n, 2e-6);
	device->ops->to_host(device, &loss, loss_sum, sizeof(loss));
	assert_true(fabs(loss - want) <= (device->dtype == WLB_FLOAT32 ? 1e-6 : 1e-12) * want);
	RELEASE(device, la, loss_sum);
	free(logits);
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
	double *logits, *scratch;
	int32_t targets[TOKENS];
};

static double run_loss(void *context)
{
	struct run *r = context;
	double loss = 0;
	memcpy(r->scratch, r->logits, sizeof(double) * TOKENS * 17);
	r->device->ops->cross_entropy(r->device, &loss, r->scratch, r->targets, TOKENS, 17, 1);
	return loss;
}

static void test_gradient(void **state)
{
	(void)state;
	struct run r = {.device = open_double(2)};
	r.logits = random_numbers(TOKENS * 17, 1), r.scratch = random_numbers(TOKENS * 17, 1);
	fill_targets(r.targets, 17);
	run_loss(&r);
	double *gradient = random_numbers(TOKENS * 17, 1);
	memcpy(gradient, r.scratch, sizeof(double) * TOKENS * 17);
	check_differences("d_logits", &(struct difference_check){run_loss, &r, r.logits, gradient, TOKENS * 17});
	free(r.logits), free(r.scratch), free(gradient);
	wlb_device_close(r.device);
}

/* Logits far beyond what exp can hold: the loss is their difference. */
static void test_large_logits(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	double logits[3] = {-5000, 4000, 1000}, loss = 0;
	const int32_t target = 0;
	device->ops->cross_entropy(device, &loss, logits, &target, 1, 3, 1);
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
		device->ops->cross_entropy(device, &loss, logits, &target, 1, 40, 1);
		assert_true(isnan(loss));
		RELEASE(device, logits);
	}
}

static void test_nan(void **state)
{
	(void)state;
	for_each_device(check_nan);
}

static void test_target_outside(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	struct wlb_error error;
	double logits[3] = {0, 0, 0}, loss = 0;
	const int32_t target = 3;
	device->ops->cross_entropy(device, &loss, logits, &target, 1, 3, 1);
	assert_int_equal(device->ops->synchronize(device, &error), -1);
	assert_non_null(strstr(error.message, "target 3 at row 0"));
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cross_entropy), cmocka_unit_test(test_gradient),
	                                   cmocka_unit_test(test_large_logits), cmocka_unit_test(test_nan),
	                                   cmocka_unit_test(test_target_outside)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
