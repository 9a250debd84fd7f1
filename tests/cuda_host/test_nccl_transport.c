/*
 * The product's transport over NCCL against its transport over MPI, on 2 or 4 ranks, each with a device of its own; or,
 * with the argument "shared", with one device for all of them.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <mpi.h>

#include "worker/comm/comm.h"
#include "worker/comm/comm_trace.h"
#include "worker/comm/communicator.h"
#include "worker/comm/group_id.h"
#include "worker/launch/launch.h"

enum { COUNT = 100, MOST_RANKS = 4 };

static struct wlb_launch *launch;
static struct wlb_device *device;
static struct wlb_comm *world; /* NCCL once it is chosen */
static struct wlb_comm *mpi;   /* the same ranks, split before that */
static struct wlb_error error;
static int shared_count; /* calls of the launcher */
static struct {
	int gathers;       /* of numbers of all ranks */
	int communicators; /* that MPI has made */
} mpi_calls;

int MPI_Allgather(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count, MPI_Datatype out_type,
                  MPI_Comm comm)
{
	mpi_calls.gathers++;
	return PMPI_Allgather(in, in_count, in_type, out, out_count, out_type, comm);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
	mpi_calls.communicators++;
	return PMPI_Comm_create_group(comm, group, tag, made);
}

/* The function of a wlb_comm_launcher: PMIx. */
static int share(void *state, const char *key, void *blob, size_t bytes, struct wlb_error *why)
{
	(void)state;
	shared_count++;
	return wlb_launch_share(launch, key, blob, bytes, why);
}

static const struct wlb_comm_launcher launcher = {.share = share};

/* Fills host[count] with small integers, whose sums have no rounding error in any type. */
static void fill(enum wlb_dtype dtype, void *host, int count)
{
	for (int i = 0; i < count; i++)
		wlb_dtype_store(dtype, host, i, (i + 3 * launch->rank) % 11 - 5);
}

/* The two calls that run beside what follows, where a call can: `back` becomes the sum of every rank's `in`. */
static void run_overlapped(struct wlb_comm *comm, enum wlb_dtype dtype, char *back, char *out, const char *in)
{
	struct wlb_comm_request *request;
	assert_int_equal(wlb_comm_reduce_scatter_overlapped(comm, out, in, COUNT, dtype, &request, &error), 0);
	assert_true((request == NULL) == wlb_comm_blocks_host(comm));
	assert_int_equal(wlb_comm_wait(request, &error), 0);
	assert_int_equal(wlb_comm_all_gather_overlapped(comm, back, out, COUNT, dtype, &request, &error), 0);
	assert_true((request == NULL) == wlb_comm_blocks_host(comm));
	assert_int_equal(wlb_comm_wait(request, &error), 0);
}

/* Runs a call of each kind on the device by one communicator; the results, on the host, follow each other in `all`. */
static size_t run_calls(struct wlb_comm *comm, enum wlb_dtype dtype, char *all)
{
	const struct wlb_ops *ops = device->ops;
	const int size = wlb_comm_size(comm), rank = wlb_comm_rank(comm);
	const size_t part = COUNT * wlb_dtype_bytes(dtype), whole = part * (size_t)size;
	char host[COUNT * MOST_RANKS * 8], *in = ops->alloc(device, whole, &error);
	char *out = ops->alloc(device, whole, &error), *back = ops->alloc(device, whole, &error);
	size_t at = 0;
	fill(dtype, host, COUNT * size);
	ops->to_device(device, NULL, in, host, whole);
	ops->to_device(device, NULL, out, host, whole);
	assert_int_equal(wlb_comm_all_reduce(comm, out, COUNT, dtype, WLB_SUM, &error), 0);
	ops->to_host(device, all + at, out, part), at += part;
	assert_int_equal(wlb_comm_all_reduce(comm, out, COUNT, dtype, WLB_MAX, &error), 0);
	ops->to_host(device, all + at, out, part), at += part;
	assert_int_equal(wlb_comm_reduce_scatter(comm, out, in, COUNT, dtype, &error), 0);
	assert_int_equal(wlb_comm_all_gather(comm, back, out, COUNT, dtype, &error), 0);
	ops->to_host(device, all + at, back, whole), at += whole;
	ops->copy(device, back + part * (size_t)rank, in, part);
	assert_int_equal(wlb_comm_all_gather(comm, back, back + part * (size_t)rank, COUNT, dtype, &error), 0);
	ops->to_host(device, all + at, back, whole), at += whole;
	run_overlapped(comm, dtype, back, out, in);
	ops->to_host(device, all + at, back, whole), at += whole;
	struct wlb_comm_request *message = rank % 2 == 0
	                                           ? wlb_comm_send_start(comm, in, COUNT, dtype, rank + 1, &error)
	                                           : wlb_comm_recv_start(comm, out, COUNT, dtype, rank - 1, &error);
	assert_non_null(message);
	assert_int_equal(wlb_comm_wait(message, &error), 0);
	ops->to_host(device, all + at, out, part), at += part;
	assert_int_equal(ops->synchronize(device, &error), 0);
	ops->release(device, in);
	ops->release(device, out);
	ops->release(device, back);
	return at;
}

static void calls_have_the_results_of_mpi(void **state)
{
	(void)state;
	static char by_nccl[COUNT * 8 * (3 + 3 * MOST_RANKS)], by_mpi[sizeof(by_nccl)];
	const enum wlb_dtype types[] = {WLB_FLOAT32, WLB_FLOAT64, WLB_BFLOAT16};
	for (int i = 0; i < 3; i++) {
		size_t bytes = run_calls(world, types[i], by_nccl);
		assert_int_equal(run_calls(mpi, types[i], by_mpi), bytes);
		assert_memory_equal(by_nccl, by_mpi, bytes);
	}
	assert_true(world->queued != NULL && mpi->queued == NULL);
}

/* Groups of every second rank, in reverse order: each has an id of its own, which its first rank made. */
static void groups_have_the_results_of_mpi(void **state)
{
	(void)state;
	double sums[2] = {0.0, 0.0}, value = 1.0 + launch->rank, *x = device->ops->alloc(device, sizeof(*x), &error);
	struct wlb_comm *parents[2] = {world, mpi};
	for (int i = 0; i < 2; i++) {
		struct wlb_comm *group = wlb_comm_split(parents[i], launch->rank % 2, -launch->rank, "parity", &error);
		assert_non_null(group);
		assert_int_equal(wlb_comm_rank(group), (launch->size - 1 - launch->rank) / 2);
		device->ops->to_device(device, NULL, x, &value, sizeof(value));
		assert_int_equal(wlb_comm_all_reduce(group, x, 1, WLB_FLOAT64, WLB_SUM, &error), 0);
		device->ops->to_host(device, &sums[i], x, sizeof(*x));
		wlb_comm_close(group);
	}
	device->ops->release(device, x);
	assert_true(sums[0] == sums[1]);
	assert_int_equal(shared_count, 1); /* the id of all ranks; those of groups pass through their parent */
}

/* The sum of this rank and the others of the group, by a call. */
static float sum_of_ranks(struct wlb_comm *group)
{
	float host = (float)launch->rank, *x = device->ops->alloc(device, sizeof(*x), &error);
	device->ops->to_device(device, NULL, x, &host, sizeof(host));
	assert_int_equal(wlb_comm_all_reduce(group, x, 1, WLB_FLOAT32, WLB_SUM, &error), 0);
	device->ops->to_host(device, &host, x, sizeof(host));
	device->ops->release(device, x);
	return host;
}

/* Groups of all ranks, of pairs, of one rank, and one that rank 0 is not in. Each rank names them in an order of its
 * own where they are connected. Whatever their number, the ranks exchange numbers once, and not by NCCL. */
static void groups_are_connected_side_by_side(void **state)
{
	(void)state;
	enum { GROUPS = 5 };
	const int rank = launch->rank, size = launch->size, calls = mpi_calls.gathers, made = mpi_calls.communicators;
	const uint64_t seq = world->seq;
	struct wlb_comm *groups[GROUPS] = {NULL}, *turned[GROUPS];
	const struct wlb_comm_split splits[GROUPS] = {{&groups[0], 0, rank, "all"},
	                                              {&groups[1], rank / 2, rank, "pair"},
	                                              {&groups[2], 7, -rank, "back"},
	                                              {&groups[3], rank, 0, "alone"},
	                                              {&groups[4], rank == 0 ? -1 : 3, 0, "some"}};
	assert_int_equal(wlb_comm_split_all(world, splits, GROUPS, &error), 0);
	for (int i = 0; i < GROUPS; i++)
		turned[i] = groups[(i + rank) % GROUPS];
	assert_int_equal(wlb_comm_connect(turned, GROUPS, &error), 0);
	assert_int_equal(mpi_calls.gathers, calls + 1);
	assert_int_equal(mpi_calls.communicators, made);
	assert_int_equal(world->seq, seq);
	assert_int_equal(wlb_comm_rank(groups[2]), size - 1 - rank);
	assert_int_equal(wlb_comm_size(groups[3]), 1);
	const float all = (float)(size * (size - 1)) / 2.0f;
	assert_true(sum_of_ranks(groups[0]) == all && sum_of_ranks(groups[2]) == all);
	assert_true(sum_of_ranks(groups[1]) == (float)(4 * (rank / 2) + 1));
	assert_true(rank == 0 ? groups[4] == NULL : sum_of_ranks(groups[4]) == all);
	double one = 1.0; /* a call of the host, for which MPI makes a communicator, once */
	for (int i = 0; i < 2; i++)
		assert_int_equal(wlb_comm_all_reduce_double(groups[1], &one, 1, WLB_SUM, &error), 0);
	assert_true(one == 4.0);
	assert_int_equal(mpi_calls.communicators, made + 1);
	for (int i = 0; i < GROUPS; i++)
		wlb_comm_close(groups[i]);
}

static int make_no_id(char *id, struct wlb_error *why)
{
	(void)id;
	return wlb_fail(why, "no id is made");
}

/* All ranks of a group are told why it has no id, and do not wait for ever for one that does not come. */
static void a_group_without_an_id_is_an_error(void **state)
{
	(void)state;
	const struct wlb_transport without = {.make_id = make_no_id};
	struct wlb_comm *groups[2] = {wlb_comm_split(world, 0, launch->rank, "none", &error),
	                              wlb_comm_split(world, 0, launch->rank, "late", &error)};
	struct wlb_transport_group *members[2] = {&groups[0]->members, &groups[1]->members};
	int which = -1;
	assert_int_equal(wlb_group_ids_exchange(&without, members, 1, 20.0, &which, &error), -1);
	assert_int_equal(which, 0);
	assert_string_equal(error.message, "no id is made");
	if (launch->rank > 0) {
		assert_int_equal(wlb_group_ids_exchange(&without, &members[1], 1, 0.2, &which, &error), -1);
		assert_non_null(strstr(error.message, "the ids of groups have not arrived after 0.2 s"));
	}
	wlb_comm_close(groups[1]);
	wlb_comm_close(groups[0]);
}

/* A group that is not connected is by its first data call. */
static void a_group_is_connected_when_it_is_used(void **state)
{
	(void)state;
	struct wlb_comm *group = wlb_comm_split(world, 0, launch->rank, "lazy", &error);
	assert_non_null(group);
	assert_int_equal(group->is_connected, 0);
	assert_int_equal(wlb_comm_reserve(group, 1, &error), 0);
	assert_true(sum_of_ranks(group) == (float)(launch->size * (launch->size - 1)) / 2.0f);
	assert_int_equal(group->is_connected, 1);
	wlb_comm_close(group);
	group = wlb_comm_split(world, 0, launch->rank, "unused", &error);
	assert_non_null(group);
	wlb_comm_close(group);
}

/* A call is started behind the work that it needs, and what follows its await finds its result: the host waits for
 * nothing in between. */
static void the_host_does_not_wait(void **state)
{
	(void)state;
	const struct wlb_ops *ops = device->ops;
	const int size = wlb_comm_size(world);
	float *x = ops->alloc(device, COUNT * sizeof(*x), &error), host[COUNT];
	float *sum = ops->alloc(device, COUNT * sizeof(*sum), &error);
	for (int i = 0; i < COUNT; i++)
		host[i] = (float)i;
	assert_int_equal(ops->synchronize(device, &error), 0);
	int64_t before = device->host_waits;
	ops->to_device(device, NULL, x, host, sizeof(host));
	ops->add(device, x, x, COUNT);
	struct wlb_comm_request *request = wlb_comm_all_reduce_start(world, x, COUNT, WLB_FLOAT32, WLB_SUM, &error);
	assert_non_null(request);
	ops->zero(device, sum, sizeof(host));
	wlb_comm_progress(world);
	assert_int_equal(wlb_comm_wait(request, &error), 0);
	ops->add(device, sum, x, COUNT);
	assert_int_equal(device->host_waits, before);
	ops->to_host(device, host, sum, sizeof(host));
	for (int i = 0; i < COUNT; i++)
		assert_true(host[i] == 2.0f * (float)size * (float)i);
	assert_true(wlb_comm_blocked_s(world) >= 0.0);
	ops->release(device, x);
	ops->release(device, sum);
}

/* A call is an event of the trace from when it is queued until its end is seen. */
static void calls_are_traced(void **state)
{
	(void)state;
	const struct wlb_ops *ops = device->ops;
	struct wlb_comm_trace *trace = wlb_comm_get_trace(world);
	struct wlb_trace_event events[64];
	uint64_t next = 0;
	char name[WLB_TRACE_NAME_SIZE];
	double *x = ops->alloc(device, sizeof(*x), &error);
	struct wlb_comm *group = wlb_comm_split(world, 0, launch->rank, "tp", &error);
	assert_non_null(group);
	assert_int_equal(ops->synchronize(device, &error), 0);
	while (wlb_comm_trace_waiting(trace, events))
		assert_int_equal(ops->synchronize(device, &error), 0);
	while (wlb_rank_trace_read(wlb_comm_trace_memory(trace), &next, events, 64) > 0)
		;
	assert_int_equal(wlb_comm_all_reduce(group, x, 1, WLB_FLOAT64, WLB_SUM, &error), 0);
	assert_int_equal(wlb_comm_all_reduce(group, x, 1, WLB_FLOAT64, WLB_MAX, &error), 0);
	assert_int_equal(ops->synchronize(device, &error), 0);
	assert_int_equal(wlb_comm_trace_waiting(trace, events), 0);
	assert_int_equal(wlb_rank_trace_read(wlb_comm_trace_memory(trace), &next, events, 64), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(events[i].kind, WLB_COMM_ALL_REDUCE);
		wlb_comm_trace_name(trace, &events[i], name);
		assert_string_equal(name, "tp");
		assert_int_equal(events[i].seq, i + 1);
		assert_true(events[i].entered_s > 0.0 && events[i].left_s >= events[i].entered_s);
	}
	assert_int_equal(wlb_comm_trace_check(trace, &error), 0);
	wlb_comm_close(group);
	ops->release(device, x);
}

/* Far more calls than are watched one by one: the last is watched. */
static void many_calls_are_watched(void **state)
{
	(void)state;
	const struct wlb_ops *ops = device->ops;
	struct wlb_trace_event event;
	float *x = ops->alloc(device, sizeof(*x), &error);
	for (int i = 0; i < 300; i++) {
		struct wlb_comm_request *request = wlb_comm_all_reduce_start(world, x, 1, WLB_FLOAT32, WLB_SUM, &error);
		assert_non_null(request);
		assert_int_equal(wlb_comm_wait(request, &error), 0);
	}
	assert_int_equal(ops->synchronize(device, &error), 0);
	assert_int_equal(wlb_comm_trace_waiting(wlb_comm_get_trace(world), &event), 0);
	ops->release(device, x);
}

static double now_s(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Rank 0 connects a group that the others never connect. */
static int connect_alone(const struct wlb_transport_group *only, struct wlb_queue *queue, double limit_s,
                         void *(*beside)(void *))
{
	int which = -1;
	pthread_t thread;
	void *of_transport = wlb_transport_nccl.open(only, device, queue, limit_s, &error);
	assert_non_null(of_transport);
	if (beside != NULL)
		assert_int_equal(pthread_create(&thread, NULL, beside, of_transport), 0);
	int rc = wlb_transport_nccl.connect(&of_transport, 1, &which, &error);
	assert_int_equal(which, 0);
	if (beside != NULL)
		assert_int_equal(pthread_join(thread, NULL), 0);
	wlb_transport_nccl.close(of_transport);
	return rc;
}

static void *abort_soon(void *of_transport)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000L}, NULL);
	wlb_transport_nccl.abort(of_transport);
	return NULL;
}

static void opening_has_a_bound(void **state)
{
	(void)state;
	double one = 1.0, began_s = now_s();
	struct wlb_queue *queue = device->ops->queue_new(device, 1, &error);
	if (launch->rank == 0) {
		struct wlb_transport_group only = {.rank = 0, .size = launch->size};
		assert_int_equal(wlb_transport_nccl.make_id(only.id, &error), 0);
		assert_int_equal(connect_alone(&only, queue, 0.2, NULL), -1);
		assert_non_null(strstr(error.message, "opening by NCCL has taken 0.2 s"));
		assert_true(now_s() - began_s >= 0.2);
		assert_int_equal(wlb_transport_nccl.make_id(only.id, &error), 0);
		assert_int_equal(connect_alone(&only, queue, 100.0, abort_soon), -1);
		assert_non_null(strstr(error.message, "NCCL was aborted"));
	}
	device->ops->queue_free(device, queue);
	assert_int_equal(wlb_comm_all_reduce_double(mpi, &one, 1, WLB_SUM, &error), 0);
}

/* The emulated NCCL refuses an abort beside any other call. */
static void an_abort_comes_between_two_calls(void **state)
{
	(void)state;
	pthread_t watchdog;
	struct wlb_comm_request *request;
	float *x = device->ops->alloc(device, sizeof(*x), &error);
	struct wlb_comm *group = wlb_comm_split(world, 0, launch->rank, "cp", &error);
	assert_non_null(group);
	assert_int_equal(wlb_comm_connect(&group, 1, &error), 0);
	assert_int_equal(pthread_create(&watchdog, NULL, abort_soon, group->state), 0);
	while ((request = wlb_comm_all_reduce_start(group, x, 1, WLB_FLOAT32, WLB_SUM, &error)) != NULL)
		assert_int_equal(wlb_comm_wait(request, &error), 0);
	assert_non_null(strstr(error.message, "NCCL was aborted"));
	assert_int_equal(pthread_join(watchdog, NULL), 0);
	wlb_comm_close(group);
	device->ops->release(device, x);
}

/* A call of one rank that the others never make is seen, named and aborted; the host was never blocked in it. */
static void a_call_that_hangs_is_aborted(void **state)
{
	(void)state;
	struct wlb_comm_trace *trace = wlb_comm_get_trace(world);
	struct wlb_trace_event event;
	char name[WLB_TRACE_NAME_SIZE];
	double one = 1.0;
	struct wlb_comm *group = wlb_comm_split(world, 0, launch->rank, "data", &error);
	assert_non_null(group);
	assert_int_equal(wlb_comm_connect(&group, 1, &error), 0);
	if (launch->rank == 0) {
		float *x = device->ops->alloc(device, sizeof(*x), &error);
		assert_non_null(wlb_comm_all_reduce_start(group, x, 1, WLB_FLOAT32, WLB_SUM, &error));
		const double began_s = now_s();
		do
			assert_int_equal(wlb_comm_trace_waiting(trace, &event), 1);
		while (now_s() < began_s + 0.1);
		wlb_comm_trace_name(trace, &event, name);
		assert_string_equal(name, "data");
		assert_int_equal(event.kind, WLB_COMM_ALL_REDUCE);
		assert_true(event.left_s == 0.0 && event.blocked_s >= event.entered_s);
	}
	wlb_comm_trace_abort(trace);
	assert_int_equal(device->ops->synchronize(device, &error), 0);
	assert_null(wlb_comm_all_reduce_start(group, &one, 1, WLB_FLOAT32, WLB_SUM, &error));
	assert_non_null(strstr(error.message, "of communicator data (rank "));
	assert_non_null(strstr(error.message, "NCCL was aborted"));
	assert_int_equal(wlb_comm_all_reduce_double(mpi, &one, 1, WLB_SUM, &error), 0);
}

/* With "shared": MPI is chosen, or NCCL refused, with the reason on every rank. */
static void a_shared_gpu_needs_mpi(void **state)
{
	(void)state;
	char why[512];
	assert_int_equal(wlb_comm_choose_transport(world, WLB_TRANSPORT_AUTO, &launcher, 5.0, why, sizeof(why), &error),
	                 0);
	assert_string_equal(why, "ranks 0 and 1 share a GPU, which NCCL refuses");
	assert_null(world->queued);
	assert_int_equal(wlb_comm_choose_transport(world, WLB_TRANSPORT_NCCL, &launcher, 5.0, why, sizeof(why), &error),
	                 -1);
	assert_string_equal(error.message, "--transport nccl: ranks 0 and 1 share a GPU, which NCCL refuses; use "
	                                   "--transport mpi");
	static char results[COUNT * 8 * (3 + 3 * MOST_RANKS)];
	run_calls(world, WLB_BFLOAT16, results);
}

static int choose(void)
{
	char why[512] = "";
	mpi = wlb_comm_split(world, 0, launch->rank, "mpi", &error);
	if (mpi == NULL ||
	    wlb_comm_choose_transport(world, WLB_TRANSPORT_AUTO, &launcher, 20.0, why, sizeof(why), &error) < 0)
		return -1;
	return why[0] == '\0' ? 0 : wlb_fail(&error, "NCCL is not chosen: %s", why);
}

int main(int count, char **arguments)
{
	int code = 0, shared = count > 1 && strcmp(arguments[1], "shared") == 0;
	if (shared)
		setenv("CUDA_HOST_GPU", "0000:01:00.0", 1);
	launch = wlb_launch_open(&code, &error);
	device = launch != NULL ? wlb_device_open_cuda(0, WLB_FLOAT32, WLB_FLOAT32, &error) : NULL;
	world = device != NULL ? wlb_comm_open_world(device, launch->rank, launch->size, &error) : NULL;
	if (world == NULL || (!shared && choose() < 0)) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	const struct CMUnitTest with_nccl[] = {
		cmocka_unit_test(calls_have_the_results_of_mpi),
		cmocka_unit_test(groups_have_the_results_of_mpi),
		cmocka_unit_test(groups_are_connected_side_by_side),
		cmocka_unit_test(a_group_is_connected_when_it_is_used),
		cmocka_unit_test(a_group_without_an_id_is_an_error),
		cmocka_unit_test(the_host_does_not_wait),
		cmocka_unit_test(calls_are_traced),
		cmocka_unit_test(many_calls_are_watched),
		cmocka_unit_test(opening_has_a_bound),
		cmocka_unit_test(an_abort_comes_between_two_calls),
		cmocka_unit_test(a_call_that_hangs_is_aborted),
	};
	const struct CMUnitTest with_mpi[] = {cmocka_unit_test(a_shared_gpu_needs_mpi)};
	int failed =
		shared ? cmocka_run_group_tests(with_mpi, NULL, NULL) : cmocka_run_group_tests(with_nccl, NULL, NULL);
	fflush(stdout);
	wlb_launch_close(launch); /* before MPI, see launch.h */
	wlb_comm_close(mpi);
	wlb_comm_close(world);
	wlb_device_close(device);
	return failed;
}
