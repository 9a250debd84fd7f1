/* A transport in the place of NCCL's, whose calls take the time of the links of a machine: see queues.h. */
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/timed/clock.h"
#include "tests/timed/device.h"
#include "tests/timed/queues.h"
#include "worker/comm/choose_nccl.h"
#include "worker/comm/mpi_group.h"
#include "worker/comm/transport.h"

/* Calls of a communicator whose ends are kept: more than a step has unawaited. */
enum { KEPT = 4096 };

struct call {
	double own_s;          /* when it can begin on this rank */
	double *others_s;      /* [size - 1], on the others */
	MPI_Request *requests; /* [2 (size - 1)] */
	double takes_s, end_s; /* end_s is known of the first `ended` calls */
};

struct wlb_timed_messages {
	const struct wlb_transport_group *group;
	struct wlb_device *device;
	struct wlb_queue *queue;
	int ranks_per_node;      /* of the group's, on the node that has most */
	struct call calls[KEPT]; /* number i, from 1, is at i % KEPT */
	double *others_s;        /* of all */
	MPI_Request *requests;
	_Atomic int64_t ended;
};

static void fail(const char *what)
{
	fprintf(stderr, "the timed device's messages: %s\n", what);
	abort();
}

static void check_mpi(int code)
{
	if (code != MPI_SUCCESS)
		fail("a call of MPI failed");
}

/* Ends the next call, if all ranks have sent when theirs can begin. Returns 0 otherwise. */
static int end_next(struct wlb_timed_messages *m, int wait)
{
	int64_t number = atomic_load_explicit(&m->ended, memory_order_relaxed) + 1;
	struct call *call = &m->calls[number % KEPT];
	const int others = m->group->size - 1;
	int done = 1;
	check_mpi(wait ? MPI_Waitall(2 * others, call->requests, MPI_STATUSES_IGNORE)
	               : MPI_Testall(2 * others, call->requests, &done, MPI_STATUSES_IGNORE));
	if (!done)
		return 0;
	double begin_s = number > 1 ? m->calls[(number - 1) % KEPT].end_s : 0.0;
	begin_s = call->own_s > begin_s ? call->own_s : begin_s;
	for (int i = 0; i < others; i++)
		begin_s = call->others_s[i] > begin_s ? call->others_s[i] : begin_s;
	call->end_s = begin_s + call->takes_s;
	atomic_store_explicit(&m->ended, number, memory_order_release);
	return 1;
}

static double call_end_s(struct wlb_timed_messages *m, int64_t number, int wait)
{
	int is_main = 0;
	MPI_Is_thread_main(&is_main);
	while (atomic_load_explicit(&m->ended, memory_order_acquire) < number)
		if (!is_main || !end_next(m, wait))
			return -1.0;
	if (number + KEPT <= m->queue->calls)
		fail("a call was asked for after too many others");
	return m->calls[number % KEPT].end_s;
}

/* How many ranks of the group are on one node, where each node has as many ranks as the machine has GPUs. */
static int count_on_node(const struct wlb_transport_group *group, int gpus_per_node)
{
	int most = 0;
	for (int i = 0; i < group->size; i++) {
		int count = 0, node = (group->mpi->ranks != NULL ? group->mpi->ranks[i] : i) / gpus_per_node;
		for (int j = 0; j < group->size; j++)
			count += (group->mpi->ranks != NULL ? group->mpi->ranks[j] : j) / gpus_per_node == node;
		most = count > most ? count : most;
	}
	return most;
}

static double message_s(const struct wlb_machine *machine, int is_on_node, double bytes)
{
	struct wlb_link network = wlb_machine_network(machine, 0);
	return is_on_node ? wlb_machine_node_send_s(machine, bytes) : network.latency_s + bytes / network.bytes_per_s;
}

static double seconds_of(const struct wlb_timed_messages *m, const struct wlb_transport_request *request)
{
	const struct wlb_machine *machine = &wlb_timed_settings_of(m->device)->machine;
	const int size = m->group->size;
	double part = (double)(request->count * wlb_dtype_bytes(request->dtype)), whole = part * size;
	switch (request->kind) {
	case WLB_COMM_ALL_REDUCE:
		return wlb_machine_reduce_s(machine, size, m->ranks_per_node, 0, part) +
		       wlb_machine_gather_s(machine, size, m->ranks_per_node, 0, part);
	case WLB_COMM_REDUCE_SCATTER:
		return wlb_machine_reduce_s(machine, size, m->ranks_per_node, 0, whole);
	case WLB_COMM_ALL_GATHER:
		return wlb_machine_gather_s(machine, size, m->ranks_per_node, 0, whole);
	case WLB_COMM_SEND:
	case WLB_COMM_RECV:
		return message_s(machine, m->ranks_per_node > 1, part);
	case WLB_COMM_ALL_REDUCE_DOUBLE: /* on the host */
		break;
	}
	return 0.0;
}

static int start(void *handle, const struct wlb_transport_request *request, struct wlb_error *error)
{
	(void)error;
	struct wlb_timed_messages *m = handle;
	const int others = m->group->size - 1;
	int64_t number = m->queue->calls + 1;
	struct call *call = &m->calls[number % KEPT];
	while (atomic_load_explicit(&m->ended, memory_order_relaxed) + KEPT <= number)
		end_next(m, 1);
	double now_s = wlb_timed_clock_now();
	call->own_s = m->queue->ready_s > now_s ? m->queue->ready_s : now_s;
	call->takes_s = seconds_of(m, request) * wlb_timed_scale_of(m->device);
	for (int i = 0; i < others; i++) {
		int other = i < m->group->rank ? i : i + 1;
		check_mpi(MPI_Irecv(&call->others_s[i], 1, MPI_DOUBLE, other, 0, m->group->mpi->comm,
		                    &call->requests[i]));
		check_mpi(MPI_Isend(&call->own_s, 1, MPI_DOUBLE, other, 0, m->group->mpi->comm,
		                    &call->requests[others + i]));
	}
	m->queue->calls = number;
	return 0;
}

static int make_id(char *id, struct wlb_error *error)
{
	(void)error;
	memset(id, 0, WLB_GROUP_ID_BYTES);
	return 0;
}

static void close_messages(void *state)
{
	struct wlb_timed_messages *m = state;
	while (atomic_load_explicit(&m->ended, memory_order_relaxed) < m->queue->calls)
		end_next(m, 1);
	free(m->others_s);
	free(m->requests);
	free(m);
}

static void *open_messages(const struct wlb_transport_group *group, struct wlb_device *device, struct wlb_queue *queue,
                           double limit_s, struct wlb_error *error)
{
	(void)limit_s;
	const size_t others = (size_t)group->size - 1;
	struct wlb_timed_messages *m = calloc(1, sizeof(*m));
	double *others_s = calloc(KEPT * others, sizeof(*others_s));
	MPI_Request *requests = calloc(KEPT * 2 * others, sizeof(MPI_Request));
	if (m == NULL || others_s == NULL || requests == NULL) {
		free(m);
		free(others_s);
		free(requests);
		wlb_fail(error, "out of memory");
		return NULL;
	}
	m->group = group;
	m->device = device;
	m->queue = queue;
	m->ranks_per_node = count_on_node(group, wlb_timed_settings_of(device)->machine.gpus_per_node);
	m->others_s = others_s;
	m->requests = requests;
	for (size_t i = 0; i < KEPT; i++) {
		m->calls[i].others_s = &others_s[i * others];
		m->calls[i].requests = &requests[i * 2 * others];
	}
	queue->messages = m;
	queue->call_end_s = call_end_s;
	return m;
}

static int connect_all(void *const *states, int count, int *which, struct wlb_error *error)
{
	for (*which = 0; *which < count; (*which)++) {
		const struct wlb_timed_messages *m = states[*which];
		if (wlb_mpi_connect(m->group->mpi, error) < 0)
			return -1;
	}
	return 0;
}

static void *handle_new(void *state, struct wlb_error *error)
{
	(void)error;
	return state;
}

static void handle_free(void *handle)
{
	(void)handle;
}

static int check(void *state, struct wlb_error *error)
{
	(void)state, (void)error;
	return 0;
}

static void abort_calls(void *state)
{
	(void)state;
}

int wlb_nccl_usable(struct wlb_error *error)
{
	(void)error;
	return 0;
}

/* The linker's --wrap calls it in place of wlb_choose_nccl: every rank has a device of its own. */
int __wrap_wlb_choose_nccl(struct wlb_mpi_group *all, struct wlb_device *device, enum wlb_transport_choice choice,
                           char *why, size_t size, struct wlb_error *error);
int __wrap_wlb_choose_nccl(struct wlb_mpi_group *all, struct wlb_device *device, enum wlb_transport_choice choice,
                           char *why, size_t size, struct wlb_error *error)
{
	(void)all, (void)choice, (void)why, (void)size;
	if (wlb_timed_settings_of(device)->machine.blocking_messages)
		return wlb_fail(error, "--transport nccl: the machine file has blocking_messages");
	return 1;
}

const struct wlb_transport wlb_transport_nccl = {
	.on_queue = 1,
	.make_id = make_id,
	.open = open_messages,
	.connect = connect_all,
	.close = close_messages,
	.handle_new = handle_new,
	.handle_free = handle_free,
	.start = start,
	.check = check,
	.abort = abort_calls,
};
