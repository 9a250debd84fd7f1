#include "coordinator/wlbd/http/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct wlbd_budget_limits limits = {.user_count = 2, .user_bytes = 100, .all_bytes = 150};

static void a_user_has_so_many(void **state)
{
	struct wlbd_budget *budget = wlbd_budget_new(&limits);
	(void)state;
	assert_int_equal(wlbd_budget_enter(budget, 1), WLBD_BUDGET_TAKEN);
	assert_int_equal(wlbd_budget_enter(budget, 1), WLBD_BUDGET_TAKEN);
	assert_int_equal(wlbd_budget_enter(budget, 1), WLBD_BUDGET_USER_FULL);
	assert_int_equal(wlbd_budget_enter(budget, 2), WLBD_BUDGET_TAKEN);
	wlbd_budget_leave(budget, 1);
	assert_int_equal(wlbd_budget_enter(budget, 1), WLBD_BUDGET_TAKEN);
	wlbd_budget_free(budget);
}

static void a_user_and_all_hold_so_many_bytes(void **state)
{
	struct wlbd_budget *budget = wlbd_budget_new(&limits);
	(void)state;
	assert_int_equal(wlbd_budget_take(budget, 1, 0), WLBD_BUDGET_TAKEN);
	assert_int_equal(wlbd_budget_take(budget, 1, 101), WLBD_BUDGET_USER_FULL);
	assert_int_equal(wlbd_budget_take(budget, 1, SIZE_MAX), WLBD_BUDGET_FULL);
	assert_int_equal(wlbd_budget_take(budget, 1, 60), WLBD_BUDGET_TAKEN);
	assert_int_equal(wlbd_budget_take(budget, 1, 41), WLBD_BUDGET_USER_FULL);
	assert_int_equal(wlbd_budget_take(budget, 1, 40), WLBD_BUDGET_TAKEN);
	assert_int_equal(wlbd_budget_take(budget, 2, 51), WLBD_BUDGET_FULL);
	assert_int_equal(wlbd_budget_take(budget, 2, 50), WLBD_BUDGET_TAKEN);
	wlbd_budget_give(budget, 1, 100);
	assert_int_equal(wlbd_budget_take(budget, 2, 50), WLBD_BUDGET_TAKEN);
	wlbd_budget_give(budget, 2, 100);
	wlbd_budget_free(budget);
}

static void who_holds_nothing_is_forgotten(void **state)
{
	struct wlbd_budget *budget = wlbd_budget_new(&limits);
	(void)state;
	for (uid_t uid = 0; uid < 1000; uid++) {
		assert_int_equal(wlbd_budget_enter(budget, uid), WLBD_BUDGET_TAKEN);
		wlbd_budget_leave(budget, uid);
		assert_int_equal(wlbd_budget_take(budget, uid, 151), WLBD_BUDGET_FULL);
	}
	wlbd_budget_give(budget, 5, 10); /* nothing of his is held */
	wlbd_budget_leave(budget, 5);
	assert_int_equal(wlbd_budget_take(budget, 5, 100), WLBD_BUDGET_TAKEN);
	wlbd_budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_has_so_many),
		cmocka_unit_test(a_user_and_all_hold_so_many_bytes),
		cmocka_unit_test(who_holds_nothing_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
