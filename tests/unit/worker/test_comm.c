/* Every collective of comm.h, on one rank or as many as mpirun starts; each checks what it received. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "kernels/bfloat16.h"
#include "worker/comm/comm.h"
#include "worker/comm/comm_trace.h"
#include "worker/launch/launch.h"

enum {
	COUNT = 1000,
	LARGE = 1 << 18, /* 2 MiB: more than any MPI sends before the other side asks for it */
	ROUNDS = 3,
	REDUCTIONS = 4,
};

struct fixture {
	struct wlb_launch *launch;
	struct wlb_device *device;
	struct wlb_comm *world;
	int rank;
	int size;
	double *buffer; /* [COUNT * size] */
	double *other;
	double *large; /* [LARGE * (size + 1)] */
};

static void sums_and_maxima(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	for (int i = 0; i < COUNT; i++)
		f->buffer[i] = f->rank + 0.5 * i;
	assert_int_equal(wlb_comm_all_reduce(f->world, f->buffer, COUNT, WLB_FLOAT64, WLB_SUM, &error), 0);
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
	assert_int_equal(wlb_comm_reduce_scatter(f->world, f->other, f->buffer, COUNT, WLB_FLOAT64, &error), 0);
	for (int i = 0; i < COUNT; i++)
		assert_true(f->other[i] == (f->rank * COUNT + i) * (f->size * (f->size + 1) / 2));
	assert_int_equal(wlb_comm_all_gather(f->world, f->buffer, f->other, COUNT, WLB_FLOAT64, &error), 0);
	for (int i = 0; i < COUNT * f->size; i++)
		assert_true(f->buffer[i] == i * (f->size * (f->size + 1) / 2));
}

static void gathered_in_place(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	double *own = f->buffer + (size_t)f->rank * COUNT;
	for (int i = 0; i < COUNT * f->size; i++)
		f->buffer[i] = -1.0;
	for (int i = 0; i < COUNT; i++)
		own[i] = f->rank * COUNT + i;
	assert_int_equal(wlb_comm_all_gather(f->world, f->buffer, own, COUNT, WLB_FLOAT64, &error), 0);
	for (int i = 0; i < COUNT * f->size; i++)
		assert_true(f->buffer[i] == i);
}

/* A send that is waited for at once. */
static int send(struct fixture *f, const double *buffer, size_t count, int to, struct wlb_error *error)
{
	struct wlb_comm_request *request = wlb_comm_send_start(f->world, buffer, count, WLB_FLOAT64, to, error);
	return request != NULL ? wlb_comm_wait(request, error) : -1;
}

/* Returns when every rank of the group has called it. */
static void meet(struct wlb_comm *group)
{
	struct wlb_error error = {0};
	double one = 1.0;
	assert_int_equal(wlb_comm_all_reduce_double(group, &one, 1, WLB_SUM, &error), 0);
	assert_true(one == wlb_comm_size(group));
}

static void around_the_ring(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	int next = (f->rank + 1) % f->size, previous = (f->rank + f->size - 1) % f->size;
	if (f->size == 1) {
		assert_int_equal(send(f, f->buffer, 1, 0, &error), -1);
		assert_string_equal(error.message, "send 1 of communicator world (rank 0 of 1): there is no rank 0 to "
		                                   "send to: this rank is alone");
		return;
	}
	f->buffer[0] = 10.0 * f->rank;
	if (f->rank == 0)
		assert_int_equal(send(f, f->buffer, 1, next, &error), 0);
	assert_int_equal(wlb_comm_recv(f->world, f->other, 1, WLB_FLOAT64, previous, &error), 0);
	if (f->rank != 0)
		assert_int_equal(send(f, f->buffer, 1, next, &error), 0);
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
	struct wlb_trace_event events[64];
	uint64_t next = 0;
	char name[WLB_TRACE_NAME_SIZE];
	while (wlb_rank_trace_read(wlb_comm_trace_memory(trace), &next, events, 64) > 0)
		;
	struct wlb_comm *group = wlb_comm_split(f->world, 0, f->rank, "all", &error);
	assert_non_null(group);
	assert_int_equal(wlb_comm_all_reduce(group, f->buffer, COUNT, WLB_FLOAT64, WLB_SUM, &error), 0);
	meet(group);
	if (f->size == 1) {
		assert_int_equal(wlb_rank_trace_read(wlb_comm_trace_memory(trace), &next, events, 64), 0);
		wlb_comm_close(group);
		return;
	}
	assert_int_equal(wlb_rank_trace_read(wlb_comm_trace_memory(trace), &next, events, 64), 2);
	assert_int_equal(events[0].kind, WLB_COMM_ALL_REDUCE);
	wlb_comm_trace_name(trace, &events[0], name);
	assert_string_equal(name, "all");
	assert_int_equal(events[0].seq, 1);
	assert_int_equal(events[0].bytes, COUNT * sizeof(double));
	assert_int_equal(events[1].kind, WLB_COMM_ALL_REDUCE_DOUBLE);
	assert_int_equal(events[1].seq, 2);
	assert_true(events[0].entered_s <= events[0].blocked_s && events[0].blocked_s <= events[0].left_s);
	assert_true(events[0].left_s <= events[1].entered_s);
	assert_int_equal(wlb_comm_trace_waiting(trace, events), 0);
	wlb_comm_close(group);
}

/* Element i of the message that rank `from` sends to `to` in a round. */
static double value_sent(int from, int to, int round, int i)
{
	return from + 10.0 * to + 100.0 * round + 1e-6 * i;
}

static void all_send_to_all_at_once(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	struct wlb_comm_request *sends[8] = {0};
	double *arrived = malloc(LARGE * sizeof(*arrived));
	assert_non_null(arrived);
	for (int round = 0; round < ROUNDS; round++) {
		for (int to = 0; to < f->size; to++) {
			double *out = f->large + (size_t)to * LARGE;
			for (int i = 0; i < LARGE; i++)
				out[i] = value_sent(f->rank, to, round, i);
			sends[to] = to == f->rank ? NULL
			                          : wlb_comm_send_start(f->world, out, LARGE, WLB_FLOAT64, to, &error);
			assert_true(to == f->rank || sends[to] != NULL);
			wlb_comm_progress(f->world);
		}
		for (int from = 0; from < f->size; from++) {
			if (from == f->rank)
				continue;
			assert_int_equal(wlb_comm_recv(f->world, arrived, LARGE, WLB_FLOAT64, from, &error), 0);
			for (int i = 0; i < LARGE; i++)
				assert_true(arrived[i] == value_sent(from, f->rank, round, i));
		}
		for (int to = f->size - 1; to >= 0; to--)
			assert_int_equal(wlb_comm_wait(sends[to], &error), 0);
	}
	free(arrived);
}

static void sends_arrive_in_the_order_they_were_started(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	int next = (f->rank + 1) % f->size, previous = (f->rank + f->size - 1) % f->size;
	size_t counts[4] = {COUNT, 1, COUNT / 2, 1}; /* a small one must not overtake */
	struct wlb_comm_request *sends[3];
	if (f->size == 1)
		return;
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < COUNT; i++)
			f->large[k * COUNT + i] = 10.0 * f->rank + k;
	for (int k = 0; k < 3; k++)
		assert_non_null(sends[k] = wlb_comm_send_start(f->world, f->large + k * COUNT, counts[k], WLB_FLOAT64,
		                                               next, &error));
	if (f->rank == 0) /* one that is waited for at once after started ones */
		assert_int_equal(send(f, f->large + 3 * COUNT, counts[3], next, &error), 0);
	for (int k = 0; k < 4; k++) {
		if (k == 3 && previous != 0)
			break;
		assert_int_equal(wlb_comm_recv(f->world, f->other, counts[k], WLB_FLOAT64, previous, &error), 0);
		assert_true(f->other[0] == 10.0 * previous + k && f->other[counts[k] - 1] == f->other[0]);
	}
	for (int k = 0; k < 3; k++)
		assert_int_equal(wlb_comm_wait(sends[k], &error), 0);
}

/* Element i of the input of rank `rank` to reduction k. */
static double share(int rank, int k, size_t i)
{
	return (double)((rank + 1) * (k + 1)) + (double)(i % 7);
}

/* Starts reductions, each with a blocking call of the same communicator behind it, and ends them in another
 * order. */
static void reduce_overlapped(struct fixture *f, double *out, double *in, size_t part, int round)
{
	struct wlb_error error = {0};
	static const int order[REDUCTIONS] = {2, 0, 3, 1};
	struct wlb_comm_request *sums[REDUCTIONS];
	size_t all = part * (size_t)f->size;
	for (int k = 0; k < REDUCTIONS; k++) {
		for (size_t i = 0; i < all; i++)
			in[(size_t)k * all + i] = share(f->rank, k + round, i);
		sums[k] = wlb_comm_reduce_scatter_start(f->world, out + (size_t)k * part, in + (size_t)k * all, part,
		                                        WLB_FLOAT64, &error);
		assert_non_null(sums[k]);
		double one = 1.0;
		assert_int_equal(wlb_comm_all_reduce_double(f->world, &one, 1, WLB_SUM, &error), 0);
		assert_true(one == f->size);
		wlb_comm_progress(f->world);
	}
	for (int k = 0; k < REDUCTIONS; k++)
		assert_int_equal(wlb_comm_wait(sums[order[k]], &error), 0);
}

/* A request that served a reduction now serves a send, which must leave the reduction's result alone. */
static void send_after_reductions(struct fixture *f, double *out, size_t count)
{
	struct wlb_error error = {0};
	if (f->size == 1)
		return;
	for (size_t i = 0; i < count; i++)
		out[i] = -1.0;
	struct wlb_comm_request *send =
		wlb_comm_send_start(f->world, f->large, 1, WLB_FLOAT64, (f->rank + 1) % f->size, &error);
	assert_int_equal(wlb_comm_recv(f->world, f->other, 1, WLB_FLOAT64, (f->rank + f->size - 1) % f->size, &error),
	                 0);
	assert_int_equal(wlb_comm_wait(send, &error), 0);
	for (size_t i = 0; i < count; i++)
		assert_true(out[i] == -1.0);
}

static void several_reductions_overlapped(void **state)
{
	struct fixture *f = *state;
	size_t part = LARGE / 8, all = part * (size_t)f->size;
	double *in = malloc(REDUCTIONS * all * sizeof(*in)), *out = calloc(REDUCTIONS * part, sizeof(*out));
	assert_true(in != NULL && out != NULL);
	for (int round = 0; round < ROUNDS; round++) {
		reduce_overlapped(f, out, in, part, round);
		for (size_t i = 0; i < REDUCTIONS * part; i++) {
			double sum = 0.0;
			for (int rank = 0; rank < f->size; rank++)
				sum += share(rank, (int)(i / part) + round, (size_t)f->rank * part + i % part);
			assert_true(out[i] == sum);
		}
		send_after_reductions(f, out, REDUCTIONS * part);
	}
	free(in);
	free(out);
}

/* A group of one split off the world: its calls communicate with no rank and are not traced. */
static void a_group_of_one_costs_nothing(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	struct wlb_comm *alone = wlb_comm_split(f->world, f->rank, 0, "alone", &error);
	assert_non_null(alone);
	struct wlb_comm *group = wlb_comm_split(alone, 5, 3, "within", &error);
	assert_non_null(group);
	assert_int_equal(wlb_comm_size(group), 1);
	assert_int_equal(wlb_comm_rank(group), 0);
	struct wlb_trace_event events[64];
	uint64_t next = 0;
	while (wlb_rank_trace_read(wlb_comm_trace_memory(wlb_comm_get_trace(group)), &next, events, 64) > 0)
		;
	/* A number of times that differs on every rank. */
	for (int turn = 0; turn <= f->rank; turn++) {
		double most = 7.0;
		f->buffer[0] = 3.0 + turn;
		f->other[0] = f->other[1] = 0.0;
		assert_int_equal(wlb_comm_all_reduce(group, f->buffer, 1, WLB_FLOAT64, WLB_SUM, &error), 0);
		assert_int_equal(wlb_comm_all_reduce_double(group, &most, 1, WLB_MAX, &error), 0);
		assert_int_equal(wlb_comm_all_gather(group, f->other, f->buffer, 1, WLB_FLOAT64, &error), 0);
		assert_int_equal(wlb_comm_all_gather(group, f->other, f->other, 1, WLB_FLOAT64, &error), 0);
		struct wlb_comm_request *sum =
			wlb_comm_reduce_scatter_start(group, f->other + 1, f->buffer, 1, WLB_FLOAT64, &error);
		assert_non_null(sum);
		wlb_comm_progress(group);
		assert_int_equal(wlb_comm_wait(sum, &error), 0);
		assert_true(most == 7.0 && f->other[0] == 3.0 + turn && f->other[1] == 3.0 + turn);
	}
	assert_int_equal(wlb_rank_trace_read(wlb_comm_trace_memory(wlb_comm_get_trace(group)), &next, events, 64), 0);
	assert_null(wlb_comm_send_start(group, f->buffer, 1, WLB_FLOAT64, 0, &error));
	assert_non_null(strstr(error.message, "of communicator within (rank 0 of 1): there is no rank 0 to send to"));
	assert_true(wlb_comm_blocked_s(group) == 0.0 && wlb_comm_busy_s(group) == 0.0);
	wlb_comm_close(group);
	wlb_comm_close(alone);
}

static void a_start_that_fails_says_why(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	struct wlb_comm *group = wlb_comm_split(f->world, 0, f->rank, "wrong", &error);
	assert_non_null(group);
	assert_null(wlb_comm_send_start(group, f->buffer, 1, WLB_FLOAT64, f->size, &error));
	assert_non_null(strstr(error.message, "send 1 of communicator wrong (rank "));
	assert_non_null(strstr(error.message, f->size == 1 ? "this rank is alone" : "MPI_ERR_RANK"));
	wlb_comm_close(group);
}

static void an_element_type_that_is_none_is_refused(void **state)
{
	struct fixture *f = *state;
	struct wlb_error errors[4] = {0};
	const enum wlb_dtype none = (enum wlb_dtype)99;
	if (f->size == 1)
		return;
	assert_int_equal(wlb_comm_all_reduce(f->world, f->buffer, 1, none, WLB_SUM, &errors[0]), -1);
	assert_int_equal(wlb_comm_reduce_scatter(f->world, f->other, f->buffer, 1, none, &errors[1]), -1);
	assert_int_equal(wlb_comm_all_gather(f->world, f->buffer, f->other, 1, none, &errors[2]), -1);
	assert_null(wlb_comm_send_start(f->world, f->buffer, 1, none, 0, &errors[3]));
	for (int i = 0; i < 4; i++)
		assert_non_null(strstr(errors[i].message,
		                       "element type 99: it must be float32 (0), float64 (1) or bfloat16 (2)"));
}

/* Started collectives with a computation between start and await, against the blocking ones. */
static void started_collectives(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	double *sum = f->large, *all = f->large + COUNT, *more = all + COUNT * f->size;
	for (int i = 0; i < COUNT; i++) {
		sum[i] = f->rank + 0.5 * i;
		f->other[i] = 3.0 * f->rank + i;
		more[i] = f->rank == i % f->size ? i : -1.0;
	}
	struct wlb_comm_request *sums = wlb_comm_all_reduce_start(f->world, sum, COUNT, WLB_FLOAT64, WLB_SUM, &error);
	struct wlb_comm_request *gather =
		wlb_comm_all_gather_start(f->world, all, f->other, COUNT, WLB_FLOAT64, &error);
	struct wlb_comm_request *most = wlb_comm_all_reduce_start(f->world, more, COUNT, WLB_FLOAT64, WLB_MAX, &error);
	assert_true(sums != NULL && gather != NULL && most != NULL);
	wlb_comm_progress(f->world);
	assert_int_equal(wlb_comm_wait(most, &error), 0);
	assert_int_equal(wlb_comm_wait(sums, &error), 0);
	assert_int_equal(wlb_comm_wait(gather, &error), 0);
	for (int i = 0; i < COUNT; i++) {
		assert_true(sum[i] == f->size * (f->size - 1) / 2 + 0.5 * i * f->size);
		assert_true(more[i] == i);
		for (int rank = 0; rank < f->size; rank++)
			assert_true(all[rank * COUNT + i] == 3.0 * rank + i);
	}
}

/* Receives that are posted before the sends are started, and awaited in another order. */
static void receives_are_posted_early(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	int next = (f->rank + 1) % f->size, previous = (f->rank + f->size - 1) % f->size;
	struct wlb_comm_request *receives[2], *sends[2];
	if (f->size == 1)
		return;
	double *arrived = malloc(2 * LARGE * sizeof(*arrived));
	assert_non_null(arrived);
	for (int k = 0; k < 2; k++) {
		receives[k] = wlb_comm_recv_start(f->world, arrived + (size_t)k * LARGE, LARGE, WLB_FLOAT64, previous,
		                                  &error);
		assert_non_null(receives[k]);
	}
	for (int k = 0; k < 2; k++) {
		double *out = f->large + (size_t)k * LARGE;
		for (int i = 0; i < LARGE; i++)
			out[i] = value_sent(f->rank, next, k, i);
		sends[k] = wlb_comm_send_start(f->world, out, LARGE, WLB_FLOAT64, next, &error);
		assert_non_null(sends[k]);
	}
	for (int k = 1; k >= 0; k--) {
		assert_int_equal(wlb_comm_wait(receives[k], &error), 0);
		for (int i = 0; i < LARGE; i++)
			assert_true(arrived[(size_t)k * LARGE + (size_t)i] == value_sent(previous, f->rank, k, i));
	}
	for (int k = 0; k < 2; k++)
		assert_int_equal(wlb_comm_wait(sends[k], &error), 0);
	free(arrived);
}

/* Numbers whose sums in any order are exact in bfloat16: small integers; and sums that round. */
static void sums_of_bfloat16(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	uint16_t values[4 * 8], part[4], largest[2];
	int size = f->size;
	for (int i = 0; i < 4 * size; i++)
		wlb_dtype_store(WLB_BFLOAT16, values, i, (f->rank + 1) * (i % 5 - 2));
	assert_int_equal(wlb_comm_reduce_scatter(f->world, part, values, 4, WLB_BFLOAT16, &error), 0);
	for (int i = 0; i < 4; i++)
		assert_true(wlb_float_of_bfloat16(part[i]) == size * (size + 1) / 2 * ((4 * f->rank + i) % 5 - 2));
	/* 256 + 1 is a tie between 256 and 258: to 256, the even one; so is every further sum with 1. 256 + 3 is one
	 * between 258 and 260: to 260. */
	wlb_dtype_store(WLB_BFLOAT16, values, 0, f->rank == 0 ? 256.0 : f->rank == 1 ? 1.0 : 0.0);
	wlb_dtype_store(WLB_BFLOAT16, values, 1, f->rank == 0 ? 256.0 : f->rank == 1 ? 3.0 : 0.0);
	wlb_dtype_store(WLB_BFLOAT16, values, 2, f->rank == 0 ? -INFINITY : 1.0);
	wlb_dtype_store(WLB_BFLOAT16, values, 3, f->rank == 0 ? NAN : 1.0);
	assert_int_equal(wlb_comm_all_reduce(f->world, values, 4, WLB_BFLOAT16, WLB_SUM, &error), 0);
	assert_true(wlb_float_of_bfloat16(values[0]) == 256.0);
	assert_true(size == 1 || wlb_float_of_bfloat16(values[1]) == 260.0);
	assert_true(isinf(wlb_float_of_bfloat16(values[2])) && isnan(wlb_float_of_bfloat16(values[3])));
	wlb_dtype_store(WLB_BFLOAT16, largest, 0, -1.0 - f->rank);
	wlb_dtype_store(WLB_BFLOAT16, largest, 1, 0.25 * f->rank);
	assert_int_equal(wlb_comm_all_reduce(f->world, largest, 2, WLB_BFLOAT16, WLB_MAX, &error), 0);
	assert_true(wlb_float_of_bfloat16(largest[0]) == -1.0 &&
	            wlb_float_of_bfloat16(largest[1]) == 0.25 * (size - 1));
}

/* As if no transport could access the device's memory: buffers are then staged on the host, also in started calls. */
static void the_same_with_staging(void **state)
{
	struct fixture *f = *state;
	f->device->host_memory = 0;
	sums_and_maxima(state);
	scattered_and_gathered(state);
	gathered_in_place(state);
	all_send_to_all_at_once(state);
	sends_arrive_in_the_order_they_were_started(state);
	several_reductions_overlapped(state);
	started_collectives(state);
	receives_are_posted_early(state);
	sums_of_bfloat16(state);
	f->device->host_memory = 1;
}

static void the_trace_of_started_calls(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	struct wlb_comm_trace *trace = wlb_comm_get_trace(f->world);
	struct wlb_trace_event events[64];
	uint64_t next = 0;
	char name[WLB_TRACE_NAME_SIZE];
	if (f->size == 1)
		return;
	while (wlb_rank_trace_read(wlb_comm_trace_memory(trace), &next, events, 64) > 0)
		;
	struct wlb_comm *group = wlb_comm_split(f->world, 0, f->rank, "beside", &error);
	assert_non_null(group);
	struct wlb_comm_request *first =
		wlb_comm_reduce_scatter_start(group, f->other, f->buffer, 1, WLB_FLOAT64, &error);
	struct wlb_comm_request *second =
		wlb_comm_reduce_scatter_start(group, f->other + 1, f->buffer, 1, WLB_FLOAT64, &error);
	assert_true(first != NULL && second != NULL);
	assert_int_equal(wlb_rank_trace_read(wlb_comm_trace_memory(trace), &next, events, 64), 0);
	assert_int_equal(wlb_comm_trace_waiting(trace, events), 0);
	nanosleep(&(struct timespec){.tv_nsec = 50000000L}, NULL); /* what the caller computes meanwhile */
	assert_int_equal(wlb_comm_wait(second, &error), 0);
	meet(group);
	assert_int_equal(wlb_comm_wait(first, &error), 0);
	assert_int_equal(wlb_rank_trace_read(wlb_comm_trace_memory(trace), &next, events, 64), 3);
	const uint64_t seqs[3] = {2, 3, 1};
	double blocked_s = 0.0;
	for (int i = 0; i < 3; i++) {
		wlb_comm_trace_name(trace, &events[i], name);
		assert_string_equal(name, "beside");
		assert_int_equal(events[i].kind, i == 1 ? WLB_COMM_ALL_REDUCE_DOUBLE : WLB_COMM_REDUCE_SCATTER);
		assert_int_equal(events[i].seq, seqs[i]);
		assert_int_equal(events[i].bytes, i == 1 ? sizeof(double) : f->size * sizeof(double));
		assert_true(events[i].blocked_s <= events[i].left_s);
		blocked_s += events[i].left_s - events[i].blocked_s;
	}
	assert_true(events[2].entered_s <= events[0].entered_s && events[0].entered_s <= events[1].entered_s);
	assert_true(events[0].blocked_s - events[0].entered_s >= 0.05);
	/* The caller is blocked while starting and waiting, not between the two. */
	assert_true(wlb_comm_blocked_s(group) >= blocked_s - 1e-9);
	assert_true(wlb_comm_busy_s(group) > 0.0);
	assert_true(wlb_comm_blocked_s(group) <= events[2].left_s - events[2].entered_s - 0.05 + 1e-9);
	wlb_comm_close(group);
}

/* What a rank waits for in a receive is counted apart from what it waits for in a reduction. */
static void receives_are_counted_apart(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	double sum = 1.0;
	struct wlb_comm *group = wlb_comm_split(f->world, 0, f->rank, "late", &error);
	assert_non_null(group);
	assert_int_equal(wlb_comm_all_reduce_double(group, &sum, 1, WLB_SUM, &error), 0);
	assert_true(wlb_comm_receive_s(group) == 0.0);
	double before_s = wlb_comm_blocked_s(group);
	for (int to = 1; f->rank == 0 && to < f->size; to++)
		assert_int_equal(
			wlb_comm_wait(wlb_comm_send_start(group, f->buffer, 1, WLB_FLOAT64, to, &error), &error), 0);
	if (f->rank > 0) {
		assert_int_equal(wlb_comm_recv(group, f->other, 1, WLB_FLOAT64, 0, &error), 0);
		assert_true(wlb_comm_receive_s(group) > 0.0);
		assert_true(fabs(wlb_comm_blocked_s(group) - before_s - wlb_comm_receive_s(group)) < 1e-9);
	} else {
		assert_true(wlb_comm_receive_s(group) == 0.0);
	}
	wlb_comm_close(group);
}

/* A thread that looks at the trace, as the watchdog does, until it sees a call of `comm` that blocks; then it wakes the
 * rank that is waited for. */
struct observer {
	struct wlb_comm_trace *trace;
	const char *comm;
	pid_t wake;
	struct wlb_trace_event seen;
};

static void *observe(void *argument)
{
	struct observer *o = argument;
	for (;; nanosleep(&(struct timespec){.tv_nsec = 1000000L}, NULL)) {
		char name[WLB_TRACE_NAME_SIZE] = "";
		if (wlb_comm_trace_waiting(o->trace, &o->seen))
			wlb_comm_trace_name(o->trace, &o->seen, name);
		if (strcmp(name, o->comm) == 0)
			break;
	}
	kill(o->wake, SIGUSR1);
	return NULL;
}

static void a_wait_that_blocks_is_seen(void **state)
{
	struct fixture *f = *state;
	struct wlb_error error = {0};
	if (f->size == 1)
		return;
	struct wlb_comm *group = wlb_comm_split(f->world, 0, f->rank, "late", &error);
	assert_non_null(group);
	if (f->rank == 0) {
		struct observer o = {.trace = wlb_comm_get_trace(group), .comm = "late"};
		pthread_t thread;
		assert_int_equal(wlb_launch_peer_pid(f->launch, 1, &o.wake, &error), 0);
		struct wlb_comm_request *send = wlb_comm_send_start(group, f->large, LARGE, WLB_FLOAT64, 1, &error);
		assert_non_null(send);
		assert_int_equal(pthread_create(&thread, NULL, observe, &o), 0);
		assert_int_equal(wlb_comm_wait(send, &error), 0);
		pthread_join(thread, NULL);
		assert_int_equal(o.seen.kind, WLB_COMM_SEND);
		assert_int_equal(o.seen.seq, 1);
		assert_int_equal(o.seen.bytes, LARGE * sizeof(double));
		assert_true(o.seen.blocked_s >= o.seen.entered_s && o.seen.left_s == 0.0);
	}
	if (f->rank == 1) {
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		assert_int_equal(sigtimedwait(&set, NULL, &(struct timespec){.tv_sec = 60}), SIGUSR1);
		assert_int_equal(wlb_comm_recv(group, f->large, LARGE, WLB_FLOAT64, 0, &error), 0);
	}
	wlb_comm_close(group);
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
	sigset_t set; /* for sigtimedwait: blocked in the threads of PMIx and MPI too */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
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
	f.large = calloc((size_t)(f.size + 1) * LARGE, sizeof(double));
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(around_the_ring, &f),
		cmocka_unit_test_prestate(sums_and_maxima, &f),
		cmocka_unit_test_prestate(scattered_and_gathered, &f),
		cmocka_unit_test_prestate(gathered_in_place, &f),
		cmocka_unit_test_prestate(all_send_to_all_at_once, &f),
		cmocka_unit_test_prestate(sends_arrive_in_the_order_they_were_started, &f),
		cmocka_unit_test_prestate(several_reductions_overlapped, &f),
		cmocka_unit_test_prestate(started_collectives, &f),
		cmocka_unit_test_prestate(receives_are_posted_early, &f),
		cmocka_unit_test_prestate(sums_of_bfloat16, &f),
		cmocka_unit_test_prestate(the_same_with_staging, &f),
		cmocka_unit_test_prestate(groups_by_color_and_key, &f),
		cmocka_unit_test_prestate(a_group_of_one_costs_nothing, &f),
		cmocka_unit_test_prestate(a_start_that_fails_says_why, &f),
		cmocka_unit_test_prestate(an_element_type_that_is_none_is_refused, &f),
		cmocka_unit_test_prestate(every_call_is_traced, &f),
		cmocka_unit_test_prestate(the_trace_of_started_calls, &f),
		cmocka_unit_test_prestate(receives_are_counted_apart, &f),
		cmocka_unit_test_prestate(a_wait_that_blocks_is_seen, &f),
		cmocka_unit_test_prestate(ranks_share_a_blob_and_know_their_places, &f),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(f.buffer);
	free(f.other);
	free(f.large);
	wlb_launch_close(f.launch); /* before MPI, see launch.h */
	wlb_comm_close(f.world);
	wlb_device_close(f.device);
	return failed;
}
