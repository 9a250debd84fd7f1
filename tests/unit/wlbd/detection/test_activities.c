/* The activities in memory: the newest of each rank, and whose memory it is. */
#include "coordinator/wlbd/detection/activities.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/budget.h"

enum { UID = 7, LIMIT_BYTES = 1 << 20 };

struct world {
	struct wlbd_budget *budget;
	struct wlbd_activities activities;
};

static void open_world(struct world *world)
{
	const struct wlbd_budget_limits limits = {.user_bytes = LIMIT_BYTES, .all_bytes = 2 * LIMIT_BYTES};
	*world = (struct world){.budget = wlbd_budget_new(&limits)};
	world->activities = (struct wlbd_activities){.budget = world->budget, .uid = UID};
}

/* All that was taken must have been given back. */
static void close_world(struct world *world)
{
	wlbd_activities_free(&world->activities);
	assert_int_equal(wlbd_budget_take(world->budget, UID, LIMIT_BYTES), WLBD_BUDGET_TAKEN);
	wlbd_budget_free(world->budget);
}

static struct wlbd_activity at_step(int rank, int64_t step, int group_count)
{
	return (struct wlbd_activity){.rank = rank, .step = step, .kind = 2, .for_s = 0.5, .group_count = group_count};
}

static int keep(struct world *world, const struct wlbd_activity *activity, const struct wlbd_activity_group *groups,
                int64_t now_ms)
{
	return wlbd_activities_keep(&world->activities, activity, groups, "n1", now_ms);
}

static int64_t step_of(const struct world *world, int rank)
{
	const struct wlbd_kept_activity *kept = wlbd_activities_of(&world->activities, rank);
	return kept != NULL ? kept->activity.step : -1;
}

static void test_newest_of_each_rank(void **state)
{
	static const struct wlbd_activity_group groups[] = {{"tp", 2, 5, 4}, {"dp", 4, 9, 9}};
	struct world world;
	struct wlbd_activity third = at_step(3, 10, 2), first = at_step(1, 12, 0);
	(void)state;
	open_world(&world);
	assert_int_equal(keep(&world, &third, groups, 1000), 0);
	assert_int_equal(keep(&world, &first, groups, 1100), 0);
	assert_null(wlbd_activities_of(&world.activities, 0));
	assert_null(wlbd_activities_of(&world.activities, 4));
	assert_null(wlbd_activities_of(&world.activities, WLBD_ACTIVITY_RANKS_MAX));
	const struct wlbd_kept_activity *kept = wlbd_activities_of(&world.activities, 3);
	assert_int_equal(kept->arrived_ms, 1000);
	assert_string_equal(kept->node, "n1");
	assert_int_equal(kept->activity.step, 10);
	assert_string_equal(kept->groups[1].name, "dp");
	assert_int_equal(kept->groups[1].entered, 9);
	assert_int_equal(step_of(&world, 1), 12);
	third = at_step(3, 11, 1);
	assert_int_equal(keep(&world, &third, groups, 2000), 0);
	kept = wlbd_activities_of(&world.activities, 3);
	assert_int_equal(kept->arrived_ms, 2000);
	assert_int_equal(kept->activity.group_count, 1);
	close_world(&world);
}

static void test_older_reports_are_ignored(void **state)
{
	static const struct wlbd_activity_group before[] = {{"tp", 2, 5, 4}, {"dp", 4, 9, 9}};
	static const struct wlbd_activity_group entered_less[] = {{"tp", 2, 6, 5}, {"dp", 4, 8, 8}};
	static const struct wlbd_activity_group left_less[] = {{"dp", 4, 9, 9}, {"tp", 2, 5, 3}}; /* in another order */
	static const struct wlbd_activity_group other[] = {{"pp", 2, 1, 1}};
	static const struct wlbd_activity_group waits[] = {{"pp", 2, 3, 2}, {"pp", 2, 2, 2}};
	struct world world;
	(void)state;
	open_world(&world);
	struct wlbd_activity kept = at_step(0, 10, 2), older = at_step(0, 9, 2), same = at_step(0, 10, 2);
	struct wlbd_activity another = at_step(0, 10, 1);
	keep(&world, &kept, before, 1000);
	keep(&world, &older, before, 1500);
	assert_int_equal(step_of(&world, 0), 10);
	keep(&world, &same, entered_less, 1500);
	keep(&world, &same, left_less, 1500);
	assert_int_equal(wlbd_activities_of(&world.activities, 0)->arrived_ms, 1000);
	keep(&world, &same, before, 1500); /* nothing says that it is older */
	assert_int_equal(wlbd_activities_of(&world.activities, 0)->arrived_ms, 1500);
	keep(&world, &another, other, 1600); /* a group that was not there before */
	assert_int_equal(wlbd_activities_of(&world.activities, 0)->arrived_ms, 1600);
	keep(&world, &another, waits, 1700);
	keep(&world, &another, &waits[1], 1800); /* it has not entered the call yet */
	assert_int_equal(wlbd_activities_of(&world.activities, 0)->arrived_ms, 1700);
	keep(&world, &older, before, 11700);
	assert_int_equal(step_of(&world, 0), 10);
	keep(&world, &older, before, 11701); /* it cannot be late by more than 10 s */
	assert_int_equal(step_of(&world, 0), 9);
	close_world(&world);
}

static void test_a_process_stays_gone(void **state)
{
	struct world world;
	(void)state;
	open_world(&world);
	struct wlbd_activity running = at_step(0, 10, 0), gone = at_step(0, 0, 0), later = at_step(0, 11, 0);
	gone.process = WLBD_PROCESS_GONE;
	keep(&world, &running, NULL, 1000);
	keep(&world, &gone, NULL, 1100); /* its step is not known any more */
	assert_int_equal(step_of(&world, 0), 0);
	keep(&world, &later, NULL, 1200);
	assert_int_equal(step_of(&world, 0), 0);
	close_world(&world);
}

static void test_memory_is_bounded(void **state)
{
	static const struct wlbd_activity_group groups[WLBD_ACTIVITY_GROUPS_MAX] = {{"tp", 2, 5, 4}};
	struct world world;
	int rank = 0, refused = 0;
	(void)state;
	open_world(&world);
	for (; rank < 10000 && !refused; rank++) {
		struct wlbd_activity activity = at_step(rank, 1, WLBD_ACTIVITY_GROUPS_MAX);
		refused = keep(&world, &activity, groups, 1000) != 0;
	}
	assert_true(refused);
	assert_in_range(rank, LIMIT_BYTES / 1000, LIMIT_BYTES / 700);
	assert_int_equal(step_of(&world, 0), 1);
	struct wlbd_activity again = at_step(0, 2, WLBD_ACTIVITY_GROUPS_MAX);
	assert_int_equal(keep(&world, &again, groups, 2000), 0); /* it takes no more memory */
	close_world(&world);
}

static void test_ranks_are_bounded(void **state)
{
	struct world world;
	(void)state;
	open_world(&world);
	struct wlbd_activity last = at_step(WLBD_ACTIVITY_RANKS_MAX - 1, 1, 0);
	struct wlbd_activity above = at_step(WLBD_ACTIVITY_RANKS_MAX, 1, 0);
	assert_int_equal(keep(&world, &last, NULL, 1000), 0);
	assert_int_equal(keep(&world, &above, NULL, 1000), 0);
	assert_non_null(wlbd_activities_of(&world.activities, WLBD_ACTIVITY_RANKS_MAX - 1));
	assert_null(wlbd_activities_of(&world.activities, WLBD_ACTIVITY_RANKS_MAX));
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_of_each_rank),  cmocka_unit_test(test_older_reports_are_ignored),
		cmocka_unit_test(test_a_process_stays_gone), cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_ranks_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
