#include "coordinator/wlbd/verdicts/outliers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/wlbd/attempts/attempts.h"

static void only_a_step_after_the_last_one_is_progress(void **state)
{
	struct wlbd_attempt attempt = {0};
	static const int64_t delivered[] = {0, 1, 2, 1, 2, 2, 3};
	(void)state;
	for (size_t i = 0; i < sizeof(delivered) / sizeof(delivered[0]); i++)
		wlbd_outliers_note_step(&attempt, delivered[i], false);
	assert_int_equal(attempt.steps.count, 4);
	assert_int_equal(attempt.steps.last, 3);
	for (int64_t step = 1; step <= 2; step++)
		wlbd_outliers_note_step(&attempt, step, true);
	assert_int_equal(attempt.steps.count, 4);
	assert_int_equal(attempt.attempt_steps.count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_step_after_the_last_one_is_progress),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
