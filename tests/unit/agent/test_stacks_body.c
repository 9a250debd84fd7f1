/* What the agent sends of the stacks of its ranks. */
#include "coordinator/agent/stacks_body.h"

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

#define ATTEMPT "6e1b0f3c-3c1e-4c39-9ad5-0d6a3d0c1f11"

static struct wlb_node_page *page;

static int open_page(void **state)
{
	int fd;
	(void)state;
	page = wlb_node_page_create(ATTEMPT, 2, &fd, NULL);
	return page != NULL ? 0 : -1;
}

static int close_page(void **state)
{
	(void)state;
	wlb_node_page_close(page);
	return 0;
}

/* What wlb-stacks prints of a rank with that many threads of that many frames. */
static json_t *printed(int threads, int frames, const char *frame)
{
	json_t *list = json_array();
	for (int i = 0; i < threads; i++) {
		json_t *names = json_array();
		for (int k = 0; k < frames; k++)
			json_array_append_new(names, json_string(frame));
		json_array_append_new(list,
		                      json_pack("{s:i, s:s, s:o}", "tid", 100 + i, "name", "worker", "frames", names));
	}
	return json_pack("{s:i, s:s, s:s, s:o, s:i}", "pid", 100, "state", "R", "note", "", "threads", list, "left_out",
	                 2);
}

static size_t size_of(const json_t *rank)
{
	return json_dumpb(rank, NULL, 0, JSON_COMPACT);
}

static const json_t *threads_of(const json_t *rank)
{
	return json_object_get(rank, "threads");
}

static void a_rank_has_its_newest_calls(void **state)
{
	(void)state;
	struct wlb_agent_trainer task = {.rank = 7, .pid = getpid()};
	struct wlb_rank_trace *trace = wlb_node_page_take_area(page, 7);
	struct wlb_trace_event call = {.kind = WLB_COMM_ALL_REDUCE, .bytes = 64};
	call.group = wlb_rank_trace_add_group(trace, "d\tp", 2);
	for (call.seq = 1; call.seq <= 50; call.seq++) {
		call.entered_s = call.blocked_s = wlb_now_s() - 5.0;
		call.left_s = call.entered_s + 1.5;
		wlb_rank_trace_leave(trace, &call);
	}
	call = (struct wlb_trace_event){.kind = WLB_COMM_RECV, .group = call.group, .seq = 51};
	call.entered_s = call.blocked_s = wlb_now_s() - 3.0;
	wlb_rank_trace_enter(trace, &call);
	json_t *line = printed(2, 3, "f+0x1 (g)"), *rank = wlb_stacks_rank(line, &task, page, 1, 0);
	const json_t *calls = json_object_get(rank, "calls"), *first = json_array_get(calls, 0), *last;
	assert_int_equal(json_array_size(calls), 32);
	assert_int_equal(json_integer_value(json_array_get(first, 2)), 20);
	assert_string_equal(json_string_value(json_array_get(first, 0)), "all_reduce");
	assert_string_equal(json_string_value(json_array_get(first, 1)), "d?p");
	assert_float_equal(json_number_value(json_array_get(first, 4)), 1.5, 1e-3);
	assert_true(json_number_value(json_array_get(first, 5)) >= 3.4);
	last = json_array_get(calls, 31);
	assert_string_equal(json_string_value(json_array_get(last, 0)), "recv");
	assert_true(json_number_value(json_array_get(last, 4)) >= 3.0);
	assert_true(json_is_null(json_array_get(last, 5)));
	assert_int_equal(json_integer_value(json_object_get(rank, "rank")), 7);
	assert_int_equal(json_integer_value(json_object_get(rank, "left_out")), 2);
	assert_int_equal(json_array_size(threads_of(rank)), 2);
	assert_null(json_object_get(line, "calls"));
	json_decref(line);
	json_decref(rank);
}

static void a_rank_takes_no_more_than_its_part(void **state)
{
	(void)state;
	char frame[201];
	struct wlb_agent_trainer task = {.rank = 8, .pid = getpid()};
	memset(frame, 'f', 200);
	frame[200] = '\0';
	json_t *line = printed(64, 64, frame), *rank = wlb_stacks_rank(line, &task, page, 8, 0);
	size_t most = WLB_STACKS_BODY_BYTES / 8, threads = json_array_size(threads_of(rank));
	assert_in_range(size_of(rank), most / 2, most);
	assert_true(threads == 2);
	assert_int_equal(json_integer_value(json_object_get(rank, "left_out")), 2 + 64 - (int)threads);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(threads_of(rank), 0), "tid")), 100);
	json_decref(rank);
	/* Of the last thread the innermost frames are left out. */
	json_array_insert_new(json_object_get(json_array_get(json_object_get(line, "threads"), 0), "frames"), 0,
	                      json_string("innermost"));
	rank = wlb_stacks_rank(line, &task, page, 64, 0);
	const json_t *frames = json_object_get(json_array_get(threads_of(rank), 0), "frames");
	assert_in_range(size_of(rank), 1, WLB_STACKS_BODY_BYTES / 64);
	assert_int_equal(json_array_size(threads_of(rank)), 1);
	assert_in_range(json_array_size(frames), 10, 40);
	assert_string_equal(json_string_value(json_array_get(frames, 0)), frame);
	json_decref(rank);
	json_decref(line);
}

static void all_ranks_fit(void **state)
{
	(void)state;
	char frame[201];
	struct wlb_agent_trainer task = {.rank = 8, .pid = getpid()};
	json_t *entries = json_array();
	memset(frame, 'f', 200);
	frame[200] = '\0';
	json_t *line = printed(64, 64, frame);
	for (task.rank = 0; task.rank < 64; task.rank++)
		json_array_append_new(entries, wlb_stacks_rank(line, &task, page, 64, 0));
	char *body = wlb_stacks_body(ATTEMPT, "n1", 17, entries);
	assert_in_range(strlen(body), WLB_STACKS_BODY_BYTES / 2, WLB_STACKS_BODY_BYTES);
	assert_non_null(strstr(body, "\"stacks_id\":17"));
	free(body);
	json_decref(line);
}

static void without_an_answer_the_kernel_is_asked(void **state)
{
	(void)state;
	struct wlb_agent_trainer task = {.rank = 9, .task = 4, .pid = getpid()};
	json_t *rank = wlb_stacks_rank(NULL, &task, page, 1, 0);
	const json_t *thread = json_array_get(threads_of(rank), 0);
	assert_string_equal(json_string_value(json_object_get(rank, "state")), "R");
	assert_string_equal(json_string_value(json_object_get(thread, "state")), "R");
	assert_int_equal(json_integer_value(json_object_get(thread, "tid")), getpid());
	assert_int_equal(json_array_size(json_object_get(thread, "frames")), 0);
	assert_true(json_is_array(json_object_get(thread, "frames")));
	assert_int_equal(json_integer_value(json_object_get(rank, "task")), 4);
	assert_non_null(strstr(json_string_value(json_object_get(rank, "note")), "did not answer"));
	assert_int_equal(json_array_size(json_object_get(rank, "calls")), 0);
	json_decref(rank);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_has_its_newest_calls),
		cmocka_unit_test(a_rank_takes_no_more_than_its_part),
		cmocka_unit_test(all_ranks_fit),
		cmocka_unit_test(without_an_answer_the_kernel_is_asked),
	};
	return cmocka_run_group_tests(tests, open_page, close_page);
}
