/* A rank's file of spans: which steps are in it, when calls of a device begin, and what has no room. */
#include "worker/record/span_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/seconds.h"

static char folder[] = "/tmp/wlb-spans-XXXXXX";
static char path[64], text[1 << 20];
static struct wlb_comm_trace *calls;
static struct wlb_error error;
static int group;

static struct wlb_span_file *open_file(int64_t first, int64_t last)
{
	struct wlb_span_file *file = wlb_span_file_new(&(struct wlb_span_file_options){.folder = folder,
	                                                                               .steps = {first, last},
	                                                                               .rank = 3,
	                                                                               .ranks = 4,
	                                                                               .node = "n\"1",
	                                                                               .calls = calls},
	                                               &error);
	assert_non_null(file);
	return file;
}

/* What was written. */
static const char *read_file(void)
{
	FILE *in = fopen(path, "r");
	assert_non_null(in);
	size_t bytes = fread(text, 1, sizeof(text) - 1, in);
	text[bytes] = '\0';
	fclose(in);
	return text;
}

static int count_of(const char *part)
{
	int count = 0;
	for (const char *at = read_file(); (at = strstr(at, part)) != NULL; at++)
		count++;
	return count;
}

/* A call of a device: blocked_s is 0. */
static void call(uint64_t seq, double entered_s, double blocked_s, double left_s)
{
	wlb_rank_trace_ended(wlb_comm_trace_memory(calls), &(struct wlb_trace_event){.kind = WLB_COMM_ALL_GATHER,
	                                                                             .group = group,
	                                                                             .seq = seq,
	                                                                             .bytes = 64,
	                                                                             .entered_s = entered_s,
	                                                                             .blocked_s = blocked_s,
	                                                                             .left_s = left_s});
}

static int setup(void **state)
{
	(void)state;
	calls = wlb_comm_trace_new();
	assert_non_null(calls);
	group = wlb_rank_trace_add_group(wlb_comm_trace_memory(calls), "tp", 2);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wlb_comm_trace_free(calls);
	unlink(path);
	return 0;
}

static void nothing_is_written_outside_of_the_steps(void **state)
{
	struct wlb_span_file *file = open_file(3, 4);
	(void)state;
	for (int64_t step = 1; step <= 6; step++) {
		wlb_span_file_begin_step(file, step);
		assert_int_equal(wlb_span_file_is_on(file), step == 3 || step == 4);
		assert_int_equal(access(path, F_OK) == 0, step >= 3);
		double now_s = wlb_now_s();
		wlb_span_file_add(file, WLB_TRACK_PASSES, "forward", now_s, now_s + 1e-6);
		call((uint64_t)step, now_s, now_s, now_s + 1e-6);
		wlb_span_file_end_step(file, step, now_s, wlb_now_s() + 1e-3);
		usleep(2000);
	}
	wlb_span_file_close(file);
	assert_int_equal(count_of("\"name\":\"step\""), 2);
	assert_int_equal(count_of("\"name\":\"forward\""), 2);
	assert_int_equal(count_of("\"seq\":3"), 1);
	assert_int_equal(count_of("\"name\":\"all_gather\""), 2);
	assert_int_equal(count_of("\"node\":\"n\\\"1\",\"ranks\":4"), 1);
	assert_int_equal(count_of("\"name\":\"tp\""), 1);
}

static void calls_of_a_device_follow_each_other(void **state)
{
	struct wlb_span_file *file = open_file(1, 1);
	(void)state;
	wlb_span_file_begin_step(file, 1);
	call(1, 10.0, 0.0, 12.0);
	call(2, 10.5, 0.0, 13.0); /* was queued while the first one ran */
	call(3, 20.0, 0.0, 21.0);
	call(4, 20.0, 30.0, 31.0); /* the rank waited for it */
	wlb_span_file_end_step(file, 1, 0.0, 40.0);
	wlb_span_file_close(file);
	assert_int_equal(count_of("\"ts\":10000000.000,\"dur\":2000000.000"), 1);
	assert_int_equal(count_of("\"ts\":12000000.000,\"dur\":1000000.000"), 1);
	assert_int_equal(count_of("\"ts\":20000000.000,\"dur\":1000000.000"), 1);
	assert_int_equal(count_of("\"ts\":30000000.000,\"dur\":1000000.000"), 1);
}

/* Runs a step of so many spans, and of calls that nobody fetches meanwhile. Returns what is said on standard error. */
static const char *fill(int spans, int calls_at_once)
{
	static char said[512];
	struct wlb_span_file *file = open_file(1, 1);
	FILE *out = tmpfile();
	int before = dup(STDERR_FILENO);
	wlb_span_file_begin_step(file, 1);
	for (int i = 0; i < spans; i++)
		wlb_span_file_add(file, WLB_TRACK_PASSES, "forward", 1.0, 2.0);
	for (int i = 0; i < calls_at_once; i++)
		call((uint64_t)i + 1, 1.0, 1.0, 2.0);
	wlb_span_file_end_step(file, 1, 0.0, 3.0);
	dup2(fileno(out), STDERR_FILENO);
	wlb_span_file_close(file);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(out);
	said[fread(said, 1, sizeof(said) - 1, out)] = '\0';
	fclose(out);
	return said;
}

static void what_has_no_room_is_counted(void **state)
{
	(void)state;
	assert_string_equal(fill(10, WLB_TRACE_EVENTS), "");
	assert_non_null(strstr(fill(10, WLB_TRACE_EVENTS + 7), " 7 spans had no room"));
	/* The step itself has no room either. */
	assert_non_null(strstr(fill(WLB_SPANS_OF_STEP_MOST + 5, 0), " 6 spans had no room"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_written_outside_of_the_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(calls_of_a_device_follow_each_other, setup, teardown),
		cmocka_unit_test_setup_teardown(what_has_no_room_is_counted, setup, teardown),
	};
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(path, sizeof(path), "%s/rank-000003.json", folder);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
