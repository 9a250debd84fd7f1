/* The trace of a rank: what a reader finds while it is written, after the writer has died, and in memory that holds
 * anything at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/rank_trace.h"

static struct wlb_rank_trace *new_trace(void)
{
	struct wlb_rank_trace *trace = calloc(1, wlb_rank_trace_bytes());
	assert_non_null(trace);
	return trace;
}

static struct wlb_trace_event call_of(int group, uint64_t seq)
{
	return (struct wlb_trace_event){.kind = WLB_COMM_ALL_GATHER,
	                                .group = group,
	                                .seq = seq,
	                                .bytes = 10 * seq,
	                                .entered_s = 1.0 * (double)seq,
	                                .blocked_s = 2.0 * (double)seq};
}

static void an_area_has_one_rank(void **state)
{
	(void)state;
	struct wlb_rank_trace *trace = new_trace();
	assert_int_equal(wlb_rank_trace_rank(trace), -1);
	assert_int_equal(wlb_rank_trace_take(trace, 0), 0);
	assert_int_equal(wlb_rank_trace_take(trace, 7), -1);
	assert_int_equal(wlb_rank_trace_rank(trace), 0);
	free(trace);
}

static void activity_and_step(void **state)
{
	(void)state;
	double since_s = -1.0, work = -1.0;
	struct wlb_rank_trace *trace = new_trace();
	assert_int_equal(wlb_rank_trace_activity(trace, &since_s), WLB_ACTIVITY_STARTING);
	assert_true(since_s == 0.0);
	wlb_rank_trace_set_activity(trace, WLB_ACTIVITY_SAVING, 12.5);
	wlb_rank_trace_set_step(trace, 41, 2.5);
	assert_int_equal(wlb_rank_trace_activity(trace, &since_s), WLB_ACTIVITY_SAVING);
	assert_true(since_s == 12.5);
	assert_int_equal(wlb_rank_trace_step(trace, &work), 41);
	assert_true(work == 2.5);
	wlb_rank_trace_set_step(trace, -3, 2.5);
	assert_int_equal(wlb_rank_trace_step(trace, &work), 0);
	assert_true(work == 0.0);
	free(trace);
}

static void what_a_check_has_found(void **state)
{
	(void)state;
	struct wlb_rank_trace *trace = new_trace();
	struct wlb_trace_corruption found;
	const struct wlb_trace_corruption told = {.step = 40, .suspects = 2, .first = 0, .other = 1};
	const struct wlb_trace_corruption bad[] = {
		{-1, 1, 0, 0}, {40, 0, 0, 0}, {40, -1, 0, 0}, {40, 1, -1, 0}, {40, 1, 0, -1}};
	assert_int_equal(wlb_rank_trace_corruption(trace, &found), 0);
	wlb_rank_trace_set_corruption(trace, &told);
	assert_int_equal(wlb_rank_trace_corruption(trace, &found), 1);
	assert_true(found.step == told.step && found.suspects == told.suspects && found.first == told.first &&
	            found.other == told.other);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		wlb_rank_trace_set_corruption(trace, &bad[i]);
		assert_int_equal(wlb_rank_trace_corruption(trace, &found), 0);
	}
	free(trace);
}

static void a_call_blocks_until_it_is_left(void **state)
{
	(void)state;
	struct wlb_rank_trace *trace = new_trace();
	struct wlb_trace_event event = {0}, call;
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	uint64_t next = 0;
	int tp = wlb_rank_trace_add_group(trace, "tp", 2), dp = wlb_rank_trace_add_group(trace, "dp", 4);
	assert_int_equal(wlb_rank_trace_blocked(trace, &event), 0);
	call = call_of(dp, 3);
	wlb_rank_trace_enter(trace, &call);
	assert_int_equal(wlb_rank_trace_blocked(trace, &event), 1);
	assert_memory_equal(&event, &call, sizeof(call));
	assert_int_equal(wlb_rank_trace_read(trace, &next, &event, 1), 0);
	assert_int_equal(wlb_rank_trace_groups(trace, groups), 2);
	assert_string_equal(groups[dp].name, "dp");
	assert_int_equal(groups[dp].ranks, 4);
	assert_int_equal(groups[dp].entered, 3);
	assert_int_equal(groups[dp].left, 0);
	call.left_s = 9.0;
	wlb_rank_trace_leave(trace, &call);
	assert_int_equal(wlb_rank_trace_blocked(trace, &event), 0);
	assert_int_equal(wlb_rank_trace_read(trace, &next, &event, 1), 1);
	assert_memory_equal(&event, &call, sizeof(call));
	wlb_rank_trace_groups(trace, groups);
	assert_int_equal(groups[dp].left, 3);
	assert_int_equal(groups[tp].entered, 0);
	free(trace);
}

static void a_wait_for_the_device_is_seen(void **state)
{
	(void)state;
	struct wlb_rank_trace *trace = new_trace();
	struct wlb_trace_event event, call = call_of(wlb_rank_trace_add_group(trace, "tp", 2), 5);
	uint64_t next = 0;
	wlb_rank_trace_wait_device(trace, &call);
	assert_int_equal(wlb_rank_trace_blocked(trace, &event), 1);
	assert_int_equal(event.seq, 5);
	wlb_rank_trace_wait_device(trace, NULL);
	assert_int_equal(wlb_rank_trace_blocked(trace, &event), 0);
	assert_int_equal(wlb_rank_trace_read(trace, &next, &event, 1), 0);
	free(trace);
}

static void calls_beside_the_caller(void **state)
{
	(void)state;
	struct wlb_rank_trace *trace = new_trace();
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	struct wlb_trace_event event, first = call_of(0, 1), third = call_of(0, 3);
	uint64_t next = 0;
	wlb_rank_trace_add_group(trace, "data", 2);
	for (uint64_t seq = 1; seq <= 3; seq++)
		wlb_rank_trace_started(trace, 0, seq);
	wlb_rank_trace_ended(trace, &third);
	wlb_rank_trace_ended(trace, &first); /* known late */
	wlb_rank_trace_groups(trace, groups);
	assert_int_equal(groups[0].entered, 3);
	assert_int_equal(groups[0].left, 3);
	assert_int_equal(wlb_rank_trace_blocked(trace, &event), 0);
	assert_int_equal(wlb_rank_trace_read(trace, &next, &event, 1), 1);
	assert_int_equal(event.seq, 3);
	free(trace);
}

static void the_ring_keeps_the_newest(void **state)
{
	(void)state;
	enum { MORE = 5 };
	struct wlb_rank_trace *trace = new_trace();
	struct wlb_trace_event events[WLB_TRACE_EVENTS + MORE];
	uint64_t next = 0;
	wlb_rank_trace_add_group(trace, "tp", 2);
	for (uint64_t seq = 1; seq <= WLB_TRACE_EVENTS + MORE; seq++) {
		struct wlb_trace_event call = call_of(0, seq);
		wlb_rank_trace_enter(trace, &call);
		call.left_s = 1.0;
		wlb_rank_trace_leave(trace, &call);
	}
	assert_int_equal(wlb_rank_trace_read(trace, &next, events, WLB_TRACE_EVENTS + MORE), WLB_TRACE_EVENTS);
	assert_int_equal(next, WLB_TRACE_EVENTS + MORE);
	for (uint64_t i = 0; i < WLB_TRACE_EVENTS; i++)
		assert_int_equal(events[i].seq, MORE + 1 + i);
	assert_int_equal(wlb_rank_trace_read(trace, &next, events, 1), 0);
	free(trace);
}

static void some_calls_that_blocked_are_chosen(void **state)
{
	(void)state;
	struct wlb_rank_trace *trace = new_trace();
	struct wlb_trace_event chosen[WLB_TRACE_CHOSEN], beside = call_of(0, 7);
	uint64_t next = 0;
	wlb_rank_trace_add_group(trace, "data", 2);
	wlb_rank_trace_set_choice(trace, 2.0);
	wlb_rank_trace_ended(trace, &beside); /* when it ended is not known to the microsecond */
	assert_int_equal(wlb_rank_trace_read_chosen(trace, &next, chosen, WLB_TRACE_CHOSEN), 0);
	int group = wlb_rank_trace_add_group(trace, "tp", 2);
	for (uint64_t seq = 1; seq <= 20000; seq++) { /* a thousand a second */
		struct wlb_trace_event call = call_of(group, seq);
		call.left_s = 1e-3 * (double)seq;
		wlb_rank_trace_leave(trace, &call);
	}
	size_t count = wlb_rank_trace_read_chosen(trace, &next, chosen, WLB_TRACE_CHOSEN);
	assert_in_range(count, 20, 120);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(chosen[i].group, group);
		assert_true(chosen[i].entered_s == 1.0 * (double)chosen[i].seq &&
		            chosen[i].bytes == 10 * chosen[i].seq);
	}
	assert_int_equal(wlb_rank_trace_read_chosen(trace, &next, chosen, WLB_TRACE_CHOSEN), 0);
	/* The memory is that of another process of the rank now. */
	wlb_rank_trace_clear(trace);
	wlb_rank_trace_add_group(trace, "tp", 2);
	struct wlb_trace_event call = call_of(0, 1);
	call.left_s = 1.0;
	wlb_rank_trace_leave(trace, &call);
	assert_int_equal(wlb_rank_trace_read_chosen(trace, &next, chosen, WLB_TRACE_CHOSEN), 1);
	assert_int_equal(chosen[0].seq, 1);
	free(trace);
}

static void numbers_of_communicators_are_used_again(void **state)
{
	(void)state;
	struct wlb_rank_trace *trace = new_trace();
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	for (int i = 0; i < WLB_TRACE_GROUPS - 1; i++)
		assert_int_equal(wlb_rank_trace_add_group(trace, "a name of more than fifteen bytes", i + 1), i);
	wlb_rank_trace_started(trace, 5, 9);
	wlb_rank_trace_remove_group(trace, 5);
	assert_int_equal(wlb_rank_trace_groups(trace, groups), WLB_TRACE_GROUPS - 1);
	assert_int_equal(groups[5].ranks, 0);
	assert_string_equal(groups[6].name, "a name of more ");
	assert_int_equal(wlb_rank_trace_add_group(trace, "tp", 2), 5);
	wlb_rank_trace_groups(trace, groups);
	assert_string_equal(groups[5].name, "tp");
	assert_int_equal(groups[5].entered, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wlb_rank_trace_add_group(trace, "one too many", 2), WLB_TRACE_GROUPS - 1);
	wlb_rank_trace_remove_group(trace, WLB_TRACE_GROUPS - 1); /* the others still use it */
	assert_int_equal(wlb_rank_trace_groups(trace, groups), WLB_TRACE_GROUPS);
	assert_string_equal(groups[WLB_TRACE_GROUPS - 1].name, "others");
	assert_int_equal(groups[WLB_TRACE_GROUPS - 1].ranks, 2);
	free(trace);
}

/* ---- writers and a reader at once ---- */

struct writer {
	struct wlb_rank_trace *trace;
	int group;
	atomic_int *stop;
};

static void *write_calls(void *argument)
{
	const struct writer *w = argument;
	for (uint64_t seq = 1; !atomic_load(w->stop); seq++) {
		struct wlb_trace_event call = call_of(w->group, seq);
		call.left_s = 3.0 * (double)seq;
		if (w->group == 0) {
			struct wlb_trace_event begun = call_of(0, seq);
			wlb_rank_trace_enter(w->trace, &begun);
			wlb_rank_trace_leave(w->trace, &call);
		} else {
			wlb_rank_trace_started(w->trace, w->group, seq);
			wlb_rank_trace_ended(w->trace, &call);
		}
	}
	return NULL;
}

static void assert_whole(const struct wlb_trace_event *event)
{
	assert_int_equal(event->bytes, 10 * event->seq);
	assert_true(event->entered_s == 1.0 * (double)event->seq && event->blocked_s == 2.0 * (double)event->seq);
	assert_true(event->left_s == 0.0 || event->left_s == 3.0 * (double)event->seq);
}

static void a_reader_finds_whole_calls(void **state)
{
	(void)state;
	struct wlb_rank_trace *trace = new_trace();
	atomic_int stop = 0;
	struct writer writers[2];
	pthread_t threads[2];
	uint64_t next = 0, last[2] = {0}, found = 0;
	for (int i = 0; i < 2; i++) {
		writers[i] = (struct writer){trace, wlb_rank_trace_add_group(trace, "g", 2), &stop};
		assert_int_equal(pthread_create(&threads[i], NULL, write_calls, &writers[i]), 0);
	}
	while (found < 200000) {
		struct wlb_trace_event events[64], blocked;
		struct wlb_trace_group groups[WLB_TRACE_GROUPS];
		size_t count = wlb_rank_trace_read(trace, &next, events, 64);
		for (size_t i = 0; i < count; i++) {
			assert_whole(&events[i]);
			assert_true(events[i].seq > last[events[i].group]);
			last[events[i].group] = events[i].seq;
		}
		if (wlb_rank_trace_blocked(trace, &blocked))
			assert_whole(&blocked);
		assert_int_equal(wlb_rank_trace_groups(trace, groups), 2);
		assert_true(groups[0].left <= groups[0].entered && groups[1].left <= groups[1].entered);
		found += count;
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	free(trace);
}

/* The memory may hold anything: another process of the user can write it, and a rank can die between two words. */
static void reading_any_memory_ends(void **state)
{
	(void)state;
	size_t bytes = wlb_rank_trace_bytes();
	unsigned char *memory = malloc(bytes);
	assert_non_null(memory);
	for (unsigned seed = 0; seed < 64; seed++) {
		struct wlb_rank_trace *trace = (struct wlb_rank_trace *)memory;
		struct wlb_trace_group groups[WLB_TRACE_GROUPS];
		struct wlb_trace_event events[64];
		uint64_t next = 0;
		double since_s, work;
		unsigned random = seed;
		for (size_t i = 0; i < bytes; i++)
			memory[i] = seed == 0 ? 0xff : (unsigned char)(rand_r(&random) >> (seed % 7));
		int count = wlb_rank_trace_groups(trace, groups);
		assert_in_range(count, 0, WLB_TRACE_GROUPS);
		for (int i = 0; i < count; i++)
			assert_true(memchr(groups[i].name, '\0', sizeof(groups[i].name)) != NULL);
		assert_in_range(wlb_rank_trace_activity(trace, &since_s), 0, WLB_ACTIVITIES - 1);
		assert_true(wlb_rank_trace_step(trace, &work) >= 0 && wlb_rank_trace_rank(trace) >= -1);
		if (wlb_rank_trace_blocked(trace, events))
			assert_true((int)events[0].kind < (int)WLB_COMM_KINDS && events[0].group < count);
		for (int i = 0; i < 100; i++)
			assert_true(wlb_rank_trace_read(trace, &next, events, 64) <= 64);
		for (int i = 0; i < 100; i++)
			assert_true(wlb_rank_trace_read_chosen(trace, &next, events, 64) <= 64);
	}
	free(memory);
}

static void what_a_dead_process_did_stays(void **state)
{
	(void)state;
	struct wlb_trace_event event;
	struct wlb_rank_trace *trace =
		mmap(NULL, wlb_rank_trace_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(trace != MAP_FAILED);
	pid_t child = fork();
	if (child == 0) {
		struct wlb_trace_event call = call_of(wlb_rank_trace_add_group(trace, "cp", 2), 77);
		wlb_rank_trace_enter(trace, &call);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(wlb_rank_trace_blocked(trace, &event), 1);
	assert_int_equal(event.seq, 77);
	munmap(trace, wlb_rank_trace_bytes());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_area_has_one_rank),
		cmocka_unit_test(activity_and_step),
		cmocka_unit_test(what_a_check_has_found),
		cmocka_unit_test(a_call_blocks_until_it_is_left),
		cmocka_unit_test(a_wait_for_the_device_is_seen),
		cmocka_unit_test(calls_beside_the_caller),
		cmocka_unit_test(the_ring_keeps_the_newest),
		cmocka_unit_test(some_calls_that_blocked_are_chosen),
		cmocka_unit_test(numbers_of_communicators_are_used_again),
		cmocka_unit_test(a_reader_finds_whole_calls),
		cmocka_unit_test(reading_any_memory_ends),
		cmocka_unit_test(what_a_dead_process_did_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
