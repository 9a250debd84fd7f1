/* The batch of each step of a ramp is that of megatron-core 0.16.1, and only ramps that reach the full batch are taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "worker/data/batch_ramp.h"

enum { STEPS = 20 };

/* What RampupBatchsizeNumMicroBatchesCalculator(full, 1, 1, False, 0, start, increment, samples) has as
 * current_global_batch_size after update(consumed, True), where each step consumes its batch. */
static void test_batches_are_megatrons(void **state)
{
	static const struct {
		struct wlb_batch_ramp ramp;
		int64_t full, batches[STEPS];
	} cases[] = {
		{{2, 3, 20}, 8, {2, 2, 2, 2, 2, 5, 5, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}},
		{{4, 4, 100}, 16, {4, 4, 4, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 16, 16, 16, 16}},
		{{1, 2, 1}, 7, {1, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
		{{1, 1, 33}, 12, {1, 1, 1, 2, 2, 3, 4, 5, 7, 9, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12}},
	};
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		int64_t consumed = 0;
		for (int step = 0; step < STEPS; step++) {
			int64_t batch = wlb_batch_ramp_at(&cases[c].ramp, cases[c].full, consumed);
			assert_int_equal(batch, cases[c].batches[step]);
			consumed += batch;
		}
	}
	(void)state;
}

static void test_without_a_ramp(void **state)
{
	const struct wlb_batch_ramp none = {0};
	struct wlb_error error;
	char text[WLB_BATCH_RAMP_TEXT_BYTES];
	assert_int_equal(wlb_batch_ramp_at(&none, 8, 0), 8);
	assert_int_equal(wlb_batch_ramp_check(&none, 8, &error), 0);
	wlb_batch_ramp_format(&none, text);
	assert_string_equal(text, "none");
	(void)state;
}

static void test_ramps_are_checked(void **state)
{
	static const struct {
		struct wlb_batch_ramp ramp;
		const char *says;
	} bad[] = {
		{{0, 3, 20}, "0 3 20: each must be at least 1"},
		{{2, 0, 20}, "2 0 20: each must be at least 1"},
		{{2, 3, 0}, "2 3 0: each must be at least 1"},
		{{2, 3, INT64_MAX}, "each must be at least 1, and at most 1099511627776 windows"},
		{{8, 3, 20}, "8 3 20: START must be below --global-batch-size 8"},
		{{9, 3, 20}, "9 3 20: START must be below --global-batch-size 8"},
		{{2, 4, 20},
	         "2 4 20: START must be below --global-batch-size 8, and INCREMENT divide what is between them, 6"},
		{{2, 7, 20}, "2 7 20: START must be below"},
	};
	const struct wlb_batch_ramp good = {2, 3, 20}, at_once = {2, 6, 1};
	struct wlb_error error;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(wlb_batch_ramp_check(&bad[i].ramp, 8, &error), -1);
		if (strstr(error.message, bad[i].says) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", error.message, bad[i].says);
	}
	assert_int_equal(wlb_batch_ramp_check(&good, 8, &error), 0);
	assert_int_equal(wlb_batch_ramp_check(&at_once, 8, &error), 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batches_are_megatrons),
		cmocka_unit_test(test_without_a_ramp),
		cmocka_unit_test(test_ramps_are_checked),
	};
	return cmocka_run_group_tests_name("batch_ramp", tests, NULL, NULL);
}
