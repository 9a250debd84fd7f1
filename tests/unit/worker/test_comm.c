/* Every collective of comm.h, on as many ranks as mpirun starts; each rank checks what it received. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/comm/comm.h"
#include "worker/comm/comm_trace.h"
#include "worker/launch.h"

enum { COUNT = 1000 };

struct fixture {
	struct wlb_launch *launch;
	struct wlb_device *device;
	struct wlb_comm *world;
	int rank;
	int size;
	double *buffer; /* [COUNT * size] */
	double *other;
};

static void sums_and_maxima(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	for (int i = 0; i < COUNT; i++)
		f->buffer[i] = f->rank + 0.5 * i;
	assert_int_equal(wlb_comm_all_reduce(f->world, f->buffer, COUNT, WLB_SUM, &error), 0);
	for (int i = 0; i < COUNT; i++)
		assert_true(f->buffer[i] == f->size * (f->size - 1) / 2 + 0.5 * i * f->size);
	double most[2] = {f->rank, -f->rank};
	assert_int_equal(wlb_comm_all_reduce_double(f->world, most, 2, WLB_MAX, &error), 0);
	assert_true(most[0] == f->size - 1 && most[1] == 0.0);
}

static void scattered_and_gathered(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	for (int i = 0; i < COUNT * f->size; i++)
		f->buffer[i] = i * (f->rank + 1);
	assert_int_equal(wlb_comm_reduce_scatter(f->world, f->other, f->buffer, COUNT, &error), 0);
	for (int i = 0; i < COUNT; i++)
		assert_true(f->other[i] == (f->rank * COUNT + i) * (f->size * (f->size + 1) / 2));
	assert_int_equal(wlb_comm_all_gather(f->world, f->buffer, f->other, COUNT, &error), 0);
	for (int i = 0; i < COUNT * f->size; i++)
		assert_true(f->buffer[i] == i * (f->size * (f->size + 1) / 2));
}

static void broadcast_from_the_last(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	int root = f->size - 1;
	char text[8] = "";
	for (int i = 0; i < COUNT; i++)
		f->buffer[i] = f->rank == root ? sqrt(i) : -1.0;
	if (f->rank == root)
		memcpy(text, "hello", 6);
	assert_int_equal(wlb_comm_broadcast(f->world, f->buffer, COUNT, root, &error), 0);
	assert_int_equal(wlb_comm_broadcast_bytes(f->world, text, sizeof(text), root, &error), 0);
	for (int i = 0; i < COUNT; i++)
		assert_true(f->buffer[i] == sqrt(i));
	assert_string_equal(text, "hello");
}

static void around_the_ring(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	int next = (f->rank + 1) % f->size, previous = (f->rank + f->size - 1) % f->size;
	if (f->size == 1) {
		assert_int_equal(wlb_comm_send(f->world, f->buffer, 1, 0, &error), -1);
		assert_string_equal(error.message, "send 1 of communicator world (rank 0 of 1): there is no rank 0 to "
		                                   "send to: this rank is alone");
		return;
	}
	f->buffer[0] = 10.0 * f->rank;
	if (f->rank == 0)
		assert_int_equal(wlb_comm_send(f->world, f->buffer, 1, next, &error), 0);
	assert_int_equal(wlb_comm_recv(f->world, f->other, 1, previous, &error), 0);
	if (f->rank != 0)
		assert_int_equal(wlb_comm_send(f->world, f->buffer, 1, next, &error), 0);
	assert_true(f->other[0] == 10.0 * previous);
}

static void groups_by_color_and_key(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	/* Even and odd ranks, in descending order. */
	struct wlb_comm *group = wlb_comm_split(f->world, f->rank % 2, -f->rank, "parity", &error);
	assert_non_null(group);
	int size = (f->size + 1 - f->rank % 2) / 2;
	assert_int_equal(wlb_comm_size(group), size);
	assert_int_equal(wlb_comm_rank(group), size - 1 - f->rank / 2);
	assert_string_equal(wlb_comm_name(group), "parity");
	double sum = f->rank;
	assert_int_equal(wlb_comm_all_reduce_double(group, &sum, 1, WLB_SUM, &error), 0);
	assert_true(sum == size * (size - 1) + size * (f->rank % 2));
	wlb_comm_close(group);
}

static void every_call_is_traced(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	struct wlb_comm_trace *trace = wlb_comm_get_trace(f->world);
	struct wlb_comm_event events[64];
	uint64_t next = 0;
	while (wlb_comm_trace_read(trace, &next, events, 64) > 0)
		;
	struct wlb_comm *group = wlb_comm_split(f->world, 0, f->rank, "all", &error);
	assert_non_null(group);
	assert_int_equal(wlb_comm_all_reduce(group, f->buffer, COUNT, WLB_SUM, &error), 0);
	assert_int_equal(wlb_comm_barrier(group, &error), 0);
	assert_int_equal(wlb_comm_trace_read(trace, &next, events, 64), 2);
	assert_int_equal(events[0].kind, WLB_COMM_ALL_REDUCE);
	assert_string_equal(events[0].comm, "all");
	assert_int_equal(events[0].seq, 1);
	assert_int_equal(events[0].bytes, COUNT * sizeof(double));
	assert_int_equal(events[1].kind, WLB_COMM_BARRIER);
	assert_int_equal(events[1].seq, 2);
	assert_true(events[0].entered_s <= events[0].left_s && events[0].left_s <= events[1].entered_s);
	assert_int_equal(wlb_comm_trace_waiting(trace, events), 0);
	wlb_comm_close(group);
}

static void the_ring_keeps_the_newest(void **state)
{
	struct wlb_comm_trace *trace = wlb_comm_trace_new(4);
	struct wlb_comm_event events[8];
	uint64_t next = 0;
	assert_non_null(trace);
	for (uint64_t seq = 1; seq <= 6; seq++) {
		wlb_comm_trace_enter(trace, WLB_COMM_BARRIER, "x", seq, 0);
		if (seq < 6)
			wlb_comm_trace_leave(trace);
	}
	assert_int_equal(wlb_comm_trace_waiting(trace, events), 1);
	assert_int_equal(events[0].seq, 6);
	assert_int_equal(wlb_comm_trace_read(trace, &next, events, 8), 3);
	assert_int_equal(events[0].seq, 3);
	assert_int_equal(events[2].seq, 5);
	wlb_comm_trace_leave(trace);
	assert_int_equal(wlb_comm_trace_read(trace, &next, events, 8), 1);
	assert_int_equal(events[0].seq, 6);
	wlb_comm_trace_free(trace);
	(void)state;
}

static void ranks_share_a_blob_and_know_their_places(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	struct {
		int rank;
		char text[3000];
	} blob = {.rank = f->rank};
	snprintf(blob.text, sizeof(blob.text), "from %d", f->rank);
	assert_int_equal(wlb_launch_share(f->launch, "test.blob", &blob, sizeof(blob), &error), 0);
	assert_int_equal(blob.rank, 0);
	assert_string_equal(blob.text, "from 0");
	/* mpirun has one node here. */
	assert_int_equal(f->launch->node_count, 1);
	assert_int_equal(f->launch->local_rank, f->rank);
	assert_int_equal(f->launch->local_size, f->size);
	pid_t pid = 0;
	if (f->size > 1) {
		assert_int_equal(wlb_launch_peer_pid(f->launch, (f->rank + 1) % f->size, &pid, &error), 0);
		assert_true(pid > 1);
	}
}

int main(void)
{
	struct wlb_error error = {0};
	int code = 0;
	struct fixture f = {.launch = wlb_launch_open(&code, &error)};
	if (f.launch != NULL) {
		f.rank = f.launch->rank;
		f.size = f.launch->size;
		f.device = wlb_device_open_cpu(WLB_FLOAT64, 1, &error);
	}
	f.world = f.device != NULL ? wlb_comm_open_world(f.device, f.rank, f.size, &error) : NULL;
	if (f.world == NULL) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	f.buffer = calloc((size_t)f.size * COUNT, sizeof(double));
	f.other = calloc((size_t)f.size * COUNT, sizeof(double));
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(around_the_ring, &f),
		cmocka_unit_test_prestate(sums_and_maxima, &f),
		cmocka_unit_test_prestate(scattered_and_gathered, &f),
		cmocka_unit_test_prestate(broadcast_from_the_last, &f),
		cmocka_unit_test_prestate(groups_by_color_and_key, &f),
		cmocka_unit_test_prestate(every_call_is_traced, &f),
		cmocka_unit_test_prestate(the_ring_keeps_the_newest, &f),
		cmocka_unit_test_prestate(ranks_share_a_blob_and_know_their_places, &f),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(f.buffer);
	free(f.other);
	wlb_comm_close(f.world);
	wlb_device_close(f.device);
	wlb_launch_close(f.launch);
	return failed;
}
