#include "coordinator/wlbd/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SLURM_USER = 64030 };

static const struct wlbd_budget_limits limits = {.user_count = 2, .all_count = 8, .user_bytes = 100, .all_bytes = 200};

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
	assert_int_equal(wlbd_budget_take(budget, 2, 76), WLBD_BUDGET_FULL);
	assert_int_equal(wlbd_budget_take(budget, 2, 75), WLBD_BUDGET_TAKEN);
	wlbd_budget_give(budget, 1, 100);
	assert_int_equal(wlbd_budget_take(budget, 2, 25), WLBD_BUDGET_TAKEN);
	wlbd_budget_give(budget, 2, 100);
	wlbd_budget_free(budget);
}

/* Takes of one byte, so that no rule about a single take is enough. Returns how many were taken. */
static size_t take_all(struct wlbd_budget *budget, uid_t uid)
{
	size_t bytes = 0;
	while (wlbd_budget_take(budget, uid, 1) == WLBD_BUDGET_TAKEN)
		bytes++;
	return bytes;
}

static size_t enter_all(struct wlbd_budget *budget, uid_t uid)
{
	size_t count = 0;
	while (wlbd_budget_enter(budget, uid) == WLBD_BUDGET_TAKEN)
		count++;
	return count;
}

/* Of 128 two users have 64 and 48; of the last eighth each has half of what the one before left. */
static void the_last_eighth_is_for_those_who_hold_little(void **state)
{
	static const size_t shares[] = {64, 48, 8, 4, 2};
	const struct wlbd_budget_limits equal = {
		.user_count = 64, .all_count = 128, .user_bytes = 64 << 20, .all_bytes = 128 << 20};
	struct wlbd_budget *budget = wlbd_budget_new(&equal);
	(void)state;
	for (uid_t uid = 1; uid <= 5; uid++) {
		assert_int_equal(take_all(budget, uid), shares[uid - 1] << 20);
		assert_int_equal(enter_all(budget, uid), shares[uid - 1]);
	}
	assert_int_equal(wlbd_budget_take(budget, 6, 200), WLBD_BUDGET_TAKEN);
	assert_int_equal(wlbd_budget_enter(budget, 6), WLBD_BUDGET_TAKEN);
	wlbd_budget_free(budget);
}

static void root_and_slurm_user_have_a_reserve(void **state)
{
	uid_t slurm_user = (uid_t)-1;
	const struct wlbd_budget_limits with_reserve = {.user_count = 40,
	                                                .all_count = 100,
	                                                .reserved_count = 20,
	                                                .user_bytes = 400,
	                                                .all_bytes = 1000,
	                                                .reserved_bytes = 200,
	                                                .slurm_user = &slurm_user};
	struct wlbd_budget *budget = wlbd_budget_new(&with_reserve);
	(void)state;
	for (uid_t uid = 1; uid <= 20; uid++) {
		take_all(budget, uid);
		enter_all(budget, uid);
	}
	assert_int_equal(wlbd_budget_take(budget, SLURM_USER, 100), WLBD_BUDGET_FULL);
	slurm_user = SLURM_USER; /* slurmctld has said it */
	assert_int_equal(wlbd_budget_take(budget, SLURM_USER, 100), WLBD_BUDGET_TAKEN);
	assert_int_equal(wlbd_budget_take(budget, 0, 100), WLBD_BUDGET_TAKEN);
	assert_int_equal(wlbd_budget_take(budget, 0, 100), WLBD_BUDGET_FULL);
	assert_true(enter_all(budget, SLURM_USER) >= 20);
	wlbd_budget_leave(budget, SLURM_USER);
	assert_int_equal(wlbd_budget_enter(budget, 1), WLBD_BUDGET_FULL);
	assert_int_equal(wlbd_budget_enter(budget, 0), WLBD_BUDGET_TAKEN);
	wlbd_budget_free(budget);
}

static void who_holds_nothing_is_forgotten(void **state)
{
	struct wlbd_budget *budget = wlbd_budget_new(&limits);
	(void)state;
	for (uid_t uid = 0; uid < 1000; uid++) {
		assert_int_equal(wlbd_budget_enter(budget, uid), WLBD_BUDGET_TAKEN);
		wlbd_budget_leave(budget, uid);
		assert_int_equal(wlbd_budget_take(budget, uid, 201), WLBD_BUDGET_FULL);
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
		cmocka_unit_test(the_last_eighth_is_for_those_who_hold_little),
		cmocka_unit_test(root_and_slurm_user_have_a_reserve),
		cmocka_unit_test(who_holds_nothing_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
