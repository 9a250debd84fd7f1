/* How long messages were under way, without what ranks wait for each other. */
#include "coordinator/wlbd/detection/transfers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

static void a_collective_takes_what_the_last_to_enter_waits(void **state)
{
	double entered_s[] = {100.0, 200.0, 300.0}, left_s[] = {100.75, 200.25, 300.5};
	const struct wlbd_seen_call call = {.entered_s = entered_s, .blocked_s = entered_s, .left_s = left_s};
	(void)state;
	assert_float_equal(wlbd_collective_transfer_s(&call, 3), 0.25, 1e-9);
	left_s[2] = NAN;
	assert_true(isnan(wlbd_collective_transfer_s(&call, 3)));
	assert_float_equal(wlbd_collective_transfer_s(&call, 2), 0.25, 1e-9);
}

/* Seconds of a message, by the clocks of the ends, of which the sender's is ahead by 100 s and the receiver's by 7 s.
 */
static double transfer(double sent_s, double asked_s, double gone_s, double awaited_s, double arrived_s)
{
	const struct wlbd_call_times times[2] = {{100.0 + sent_s, 100.0 + asked_s, 100.0 + gone_s},
	                                         {7.0 + awaited_s - 0.5, 7.0 + awaited_s, 7.0 + arrived_s}};
	return wlbd_message_transfer_s(times, 100.0, 7.0);
}

static void a_message_tells_the_link_where_both_ends_wait(void **state)
{
	(void)state;
	/* The receiver waits for a late sender, which waits for its message. */
	assert_float_equal(transfer(5.0, 5.0, 5.2, 1.0, 5.3), 0.3, 1e-9);
	/* The sender waits for a late receiver. */
	assert_float_equal(transfer(1.0, 1.0, 5.2, 5.0, 5.3), 0.3, 1e-9);
	/* The sender computes beside its message, which may wait for that. */
	assert_true(isnan(transfer(5.0, 5.1, 5.2, 1.0, 5.3)));
	/* The message was gone before the receiver came: it may have arrived before. */
	assert_true(isnan(transfer(1.0, 1.0, 1.2, 5.0, 5.1)));
	/* It takes no longer than clocks differ. */
	assert_true(isnan(transfer(5.0, 5.0, 5.01, 1.0, 5.01)));
	/* It arrives before it is sent, by clocks that are not aligned yet, or whose difference is not known. */
	assert_true(isnan(transfer(5.0, 5.0, 5.2, 1.0, 4.9)));
	const struct wlbd_call_times times[2] = {{1.0, 1.0, 2.0}, {1.0, 1.0, 2.0}};
	assert_true(isnan(wlbd_message_transfer_s(times, NAN, 0.0)));
	assert_true(isnan(wlbd_message_transfer_s(times, 0.0, NAN)));
}

static void tell_short(struct wlbd_transfers *transfers, int32_t group, double seconds, int count)
{
	for (int i = 0; i < count; i++)
		wlbd_transfers_add(transfers, group, seconds, 128.0);
}

static double byte_s_of_size(struct wlbd_transfers *transfers, double seconds, double bytes, int64_t step)
{
	wlbd_transfers_add(transfers, 3, seconds, bytes);
	return wlbd_transfers_take(transfers, 3, step);
}

/* Returns the seconds for a byte of a message of 64 KiB. */
static double byte_s_of(struct wlbd_transfers *transfers, double seconds, int64_t step)
{
	return byte_s_of_size(transfers, seconds, 65536.0, step);
}

/* Eight messages tell what a size takes, and nothing of the link. */
static void learn(struct wlbd_transfers *transfers, double seconds, double bytes)
{
	for (int i = 0; i < 8; i++)
		assert_true(isnan(byte_s_of_size(transfers, seconds, bytes, 1)));
}

/* Processors take 2 ms for a short message, and 50 over the slow link. A message of 0.2 ms that takes 7 is none that
 * takes twice as long; one of 100 ms that takes 400 is. */
static void what_processors_take_is_no_slow_link(void **state)
{
	struct wlbd_transfers *transfers = wlbd_transfers_new(4);
	(void)state;
	tell_short(transfers, 0, 1e-3, 31);
	tell_short(transfers, 1, 50e-3, 7); /* too few */
	tell_short(transfers, 3, 0.1e-3, 8);
	assert_true(isnan(byte_s_of(transfers, 0.1, 1))); /* not known yet */
	tell_short(transfers, 2, 2e-3, 32);
	learn(transfers, 0.2e-3, 65536.0);
	double usual = byte_s_of(transfers, 0.2e-3, 2), delayed = byte_s_of(transfers, 7e-3, 3);
	assert_float_equal(usual, 20.2e-3 / 65536.0, 1e-12);
	assert_true(delayed < 1.4 * usual);
	assert_true(byte_s_of(transfers, 0.4, 5) > 3.0 * byte_s_of(transfers, 0.1, 6));
	tell_short(transfers, 2, 1.0, 100); /* it does not follow what happens later */
	assert_float_equal(byte_s_of(transfers, 0.2e-3, 7), usual, 1e-15);
	wlbd_transfers_free(transfers);
}

/* A run may tell no short messages at all. */
static void without_short_messages_some_time_is_assumed(void **state)
{
	struct wlbd_transfers *transfers = wlbd_transfers_new(4);
	(void)state;
	for (int step = 1; step < 256; step++)
		assert_true(isnan(byte_s_of(transfers, 0.01, step)));
	assert_true(isnan(byte_s_of(transfers, 0.01, 256)));
	learn(transfers, 0.01, 65536.0);
	assert_float_equal(byte_s_of(transfers, 0.01, 257), 0.03 / 65536.0, 1e-12);
	wlbd_transfers_free(transfers);
}

/* A message of ten times the bytes takes a tenth for each: which sizes are reported is no matter of the link. */
static void other_sizes_are_no_slow_link(void **state)
{
	struct wlbd_transfers *transfers = wlbd_transfers_new(4);
	(void)state;
	tell_short(transfers, 3, 1e-3, 32); /* 10 ms are added */
	learn(transfers, 0.03, 524288.0);
	assert_float_equal(byte_s_of_size(transfers, 0.03, 524288.0, 2), 0.04 / 524288.0, 1e-12);
	learn(transfers, 0.01, 65536.0);
	assert_float_equal(byte_s_of_size(transfers, 0.01, 65536.0, 3), 0.04 / 524288.0, 1e-12);
	assert_float_equal(byte_s_of_size(transfers, 0.01, 70000.0, 4), 0.04 / 524288.0, 1e-12);
	assert_float_equal(byte_s_of_size(transfers, 0.05, 65536.0, 5), 0.12 / 524288.0, 1e-12);
	assert_float_equal(byte_s_of_size(transfers, 0.11, 524288.0, 6), 0.12 / 524288.0, 1e-12);
	wlbd_transfers_free(transfers);
}

static void so_many_sizes_are_judged(void **state)
{
	struct wlbd_transfers *transfers = wlbd_transfers_new(4);
	double bytes = 4096.0;
	(void)state;
	tell_short(transfers, 3, 1e-3, 32);
	for (int size = 0; size < 16; size++, bytes *= 2.0) {
		learn(transfers, 0.01, bytes);
		assert_false(isnan(byte_s_of_size(transfers, 0.01, bytes, 2 + size)));
	}
	learn(transfers, 0.01, bytes);
	assert_true(isnan(byte_s_of_size(transfers, 0.01, bytes, 100)));
	learn(transfers, 0.01, 9.2e18);
	assert_false(isnan(byte_s_of_size(transfers, 0.01, 4096.0, 101)));
	wlbd_transfers_free(transfers);
}

static void each_step_takes_one(void **state)
{
	struct wlbd_transfers *transfers = wlbd_transfers_new(2);
	(void)state;
	assert_true(isnan(wlbd_transfers_take(transfers, 1, 10)));
	tell_short(transfers, 0, 1e-12, 32);
	for (int i = 0; i < 8; i++)
		wlbd_transfers_add(transfers, 1, 1000.0, 10000.0);
	for (int i = 1; i <= 20; i++)
		wlbd_transfers_add(transfers, 1, 1000.0 * i, 10000.0);
	wlbd_transfers_add(transfers, 1, NAN, 10000.0);
	wlbd_transfers_add(transfers, 1, 0.0, 10000.0);
	wlbd_transfers_add(transfers, 1, 50.0, 100.0);
	assert_true(isnan(wlbd_transfers_take(transfers, 0, 10)));
	for (int64_t step = 11; step <= 18; step++) {
		assert_float_equal(wlbd_transfers_take(transfers, 1, step), 0.1 * (double)(step + 2), 1e-9);
		assert_true(isnan(wlbd_transfers_take(transfers, 1, step))); /* another member */
		assert_true(isnan(wlbd_transfers_take(transfers, 1, step - 1)));
	}
	assert_true(isnan(wlbd_transfers_take(transfers, 1, 19)));
	wlbd_transfers_free(transfers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_collective_takes_what_the_last_to_enter_waits),
		cmocka_unit_test(a_message_tells_the_link_where_both_ends_wait),
		cmocka_unit_test(what_processors_take_is_no_slow_link),
		cmocka_unit_test(without_short_messages_some_time_is_assumed),
		cmocka_unit_test(other_sizes_are_no_slow_link),
		cmocka_unit_test(so_many_sizes_are_judged),
		cmocka_unit_test(each_step_takes_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
