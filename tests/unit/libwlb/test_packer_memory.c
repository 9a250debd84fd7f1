/* Every allocation of the packer and the balancer fails once: the error is reported, nothing leaks, nothing is changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/bench/pack/corpus.h"
#include "tests/unit/libwlb/allocations.h"

static void a_packer_is_made_whole_or_not_at_all(void **state)
{
	(void)state;
	struct wlb_packer_options o;
	struct wlb_packer *packer = NULL;
	int failures = 0;
	wlb_packer_options_init(&o, 1000, 4);
	for (long n = 0; packer == NULL; n++) {
		struct wlb_error error = {""};
		allocations_left = n;
		packer = wlb_packer_new(&corpus_model, &o, &error);
		failures += packer == NULL;
		if (packer == NULL)
			assert_memory_equal(error.message, "out of memory", 13);
	}
	allocations_left = -1;
	assert_true(failures >= 7);
	wlb_packer_free(packer);
}

/* Allocation n of a packer's first step fails, and the step is repeated with memory. Returns whether there was one. */
static int step_fails_at(long n)
{
	struct wlb_packer_options o;
	struct wlb_span batch[100];
	wlb_packer_options_init(&o, 1000, 4);
	for (int i = 0; i < 100; i++)
		batch[i] = (struct wlb_span){.document = i, .tokens = 40};
	struct wlb_packer *packer = wlb_packer_new(&corpus_model, &o, NULL);
	assert_non_null(packer);
	allocations_left = n;
	const struct wlb_step *step = wlb_packer_next(packer, batch, 100, NULL);
	allocations_left = -1;
	int failed = step == NULL;
	if (failed)
		step = wlb_packer_next(packer, batch, 100, NULL);
	assert_non_null(step);
	assert_int_equal(step->index, 0);
	assert_int_equal(step->tokens + step->held_tokens, 4000);
	wlb_packer_free(packer);
	return failed;
}

static void a_step_without_memory_can_be_repeated(void **state)
{
	(void)state;
	int failures = 0;
	while (step_fails_at(failures))
		failures++;
	assert_int_equal(failures, 5);
}

static void dealing_without_memory_says_so(void **state)
{
	(void)state;
	int64_t tokens[] = {1, 2, 3};
	int32_t bin_of[3];
	int rc = -1, failures = 0;
	for (long n = 0; rc < 0; n++) {
		allocations_left = n;
		rc = wlb_pack_balanced(&corpus_model, tokens, 3, 2, 10, bin_of, NULL);
		failures += rc < 0;
	}
	allocations_left = -1;
	assert_int_equal(failures, 9);
}

static double as_many(const void *context, int64_t tokens)
{
	(void)context;
	return (double)tokens;
}

static const int64_t step_tokens[] = {7, 1, 6, 2, 5, 3, 4, 4};

/* Eight spans to four micro-batches. */
static int balance(struct wlb_balancer *balancer, struct wlb_error *error)
{
	int32_t bin_of[8];
	int64_t used[4] = {0};
	int rc = wlb_balancer_pack(balancer, step_tokens, 8, 4, 8, bin_of, error);
	if (rc != 0)
		return rc;
	for (int i = 0; i < 8; i++)
		used[bin_of[i]] += step_tokens[i];
	for (int b = 0; b < 4; b++)
		assert_int_equal(used[b], 8);
	return 0;
}

/* Allocation n of a step larger than the one before fails. Gives whether there was one. */
static int growing_fails_at(long n)
{
	int32_t bin_of[2];
	struct wlb_error error;
	struct wlb_balancer *balancer = wlb_balancer_new(as_many, NULL, NULL);
	assert_int_equal(wlb_balancer_pack(balancer, step_tokens, 2, 1, 8, bin_of, NULL), 0);
	allocations_left = n;
	int rc = balance(balancer, &error);
	allocations_left = -1;
	if (rc < 0)
		assert_string_equal(error.message, "out of memory while packing 8 spans");
	assert_int_equal(balance(balancer, NULL), 0);
	wlb_balancer_free(balancer);
	return rc < 0;
}

static void a_balancer_without_memory_can_go_on(void **state)
{
	(void)state;
	int failures = 0;
	while (growing_fails_at(failures))
		failures++;
	assert_int_equal(failures, 9);
	struct wlb_error error;
	allocations_left = 0;
	assert_null(wlb_balancer_new(as_many, NULL, &error));
	allocations_left = -1;
	assert_string_equal(error.message, "out of memory while making a balancer");
}

static void a_balancer_needs_no_memory_twice(void **state)
{
	(void)state;
	int32_t bin_of[8];
	struct wlb_balancer *balancer = wlb_balancer_new(as_many, NULL, NULL);
	assert_int_equal(balance(balancer, NULL), 0);
	allocations_left = 0;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(wlb_balancer_pack(balancer, step_tokens, 2, 1, 8, bin_of, NULL), 0);
		assert_int_equal(wlb_balancer_pack(balancer, step_tokens, 8, 3, 8, bin_of, NULL), 1);
		assert_int_equal(balance(balancer, NULL), 0);
	}
	allocations_left = -1;
	wlb_balancer_free(balancer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packer_is_made_whole_or_not_at_all),
		cmocka_unit_test(a_step_without_memory_can_be_repeated),
		cmocka_unit_test(dealing_without_memory_says_so),
		cmocka_unit_test(a_balancer_without_memory_can_go_on),
		cmocka_unit_test(a_balancer_needs_no_memory_twice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
