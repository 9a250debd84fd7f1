/* Calls of which ranks tell the times: put together, or given up. */
#include "coordinator/wlbd/detection/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

static const int32_t all[] = {0, 1, 2}, ends[] = {2, 0};
static const struct wlb_verdict_group groups[] = {
	{.kind = WLB_VERDICT_DP, .members = all, .count = 3},
	{.kind = WLB_VERDICT_PP, .members = ends, .count = 2},
};
static const struct wlb_verdict_world world = {.ranks = 3, .nodes = 1, .groups = groups, .group_count = 2};

/* What was given. */
struct given {
	int collectives, messages;
	uint64_t seq;
	double bytes, entered_s[3], left_s[3];
	struct wlbd_call_times ends[2];
};

static void take_collective(void *context, const struct wlbd_seen_call *call)
{
	struct given *given = context;
	assert_int_equal(call->group, 0);
	given->collectives++;
	given->seq = call->seq;
	given->bytes = call->bytes;
	memcpy(given->entered_s, call->entered_s, sizeof(given->entered_s));
	memcpy(given->left_s, call->left_s, sizeof(given->left_s));
}

static void take_message(void *context, int32_t group, double bytes, const struct wlbd_call_times times[2])
{
	struct given *given = context;
	assert_int_equal(group, 1);
	given->messages++;
	given->bytes = bytes;
	memcpy(given->ends, times, sizeof(given->ends));
}

static void add(struct wlbd_calls *calls, struct given *given, int32_t group, int32_t member, int64_t seq,
                double waited_later_s)
{
	const struct wlbd_calls_taker taker = {given, take_collective, take_message};
	const struct wlbd_rank_call call = {.seq = seq,
	                                    .bytes = 4096,
	                                    .entered_s = 10.0 + member,
	                                    .blocked_s = 10.0 + member + waited_later_s,
	                                    .left_s = 20.0 + member + waited_later_s};
	wlbd_calls_add(calls, group, member, &call, &taker);
}

static void a_call_is_given_once_all_have_told_it(void **state)
{
	struct wlbd_calls *calls = wlbd_calls_new(&world);
	struct given given = {0};
	(void)state;
	add(calls, &given, 0, 2, 7, 0.0);
	add(calls, &given, 0, 0, 8, 0.0);
	add(calls, &given, 0, 0, 7, 0.5); /* started before it was awaited */
	add(calls, &given, 0, 0, 7, 0.0); /* reported again */
	assert_int_equal(given.collectives, 0);
	add(calls, &given, 0, 1, 7, 0.0);
	assert_int_equal(given.collectives, 1);
	assert_int_equal(given.seq, 7);
	assert_true(given.bytes == 4096.0);
	assert_true(isnan(given.entered_s[0]) && isnan(given.left_s[0]));
	assert_true(given.entered_s[1] == 11.0 && given.left_s[1] == 21.0);
	assert_true(given.entered_s[2] == 12.0 && given.left_s[2] == 22.0);
	wlbd_calls_free(calls);
}

/* A member whose agent tells no calls, or other ones: newer calls replace those that are not complete. */
static void what_members_do_not_tell_is_given_up(void **state)
{
	struct wlbd_calls *calls = wlbd_calls_new(&world);
	struct given given = {0};
	(void)state;
	for (int64_t seq = 1; seq <= 100; seq++) {
		add(calls, &given, 0, 0, seq, 0.0);
		if (seq % 2 == 0)
			add(calls, &given, 0, 1, seq, 0.0);
	}
	assert_in_range(given.collectives, 20, 50);
	assert_in_range(given.seq, 60, 80); /* the oldest first */
	assert_true(isnan(given.left_s[2]) && given.left_s[1] == 21.0);
	wlbd_calls_free(calls);
}

static void a_message_has_both_ends(void **state)
{
	struct wlbd_calls *calls = wlbd_calls_new(&world);
	struct given given = {0};
	(void)state;
	add(calls, &given, 1, 1, 3, 0.0);
	assert_int_equal(given.messages, 0);
	add(calls, &given, 1, 0, 3, 0.25);
	assert_int_equal(given.messages, 1);
	assert_true(given.ends[0].entered_s == 10.0 && given.ends[0].blocked_s == 10.25);
	assert_true(given.ends[1].blocked_s == 11.0 && given.ends[1].left_s == 21.0);
	assert_int_equal(given.collectives, 0);
	for (int64_t seq = 10; seq < 100; seq++)
		add(calls, &given, 1, 0, seq, 0.0);
	assert_int_equal(given.messages, 1);
	wlbd_calls_free(calls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_given_once_all_have_told_it),
		cmocka_unit_test(what_members_do_not_tell_is_given_up),
		cmocka_unit_test(a_message_has_both_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
