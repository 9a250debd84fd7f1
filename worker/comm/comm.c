#include "worker/comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/comm/comm_trace.h"
#include "worker/comm/transport.h"

enum { TRACE_EVENTS = 4096 };

struct wlb_comm {
	const struct wlb_transport *transport;
	void *state;
	struct wlb_device *device;
	struct wlb_comm_trace *trace; /* the world's, shared by the groups */
	int is_world;
	int rank;
	int size;
	uint64_t seq;
	char name[16];
};

struct wlb_comm *wlb_comm_open_world(struct wlb_device *device, int rank, int size, struct wlb_error *error)
{
	struct wlb_comm *comm = calloc(1, sizeof(*comm));
	struct wlb_comm_trace *trace = wlb_comm_trace_new(TRACE_EVENTS);
	if (comm == NULL || trace == NULL) {
		wlb_fail(error, "out of memory for the communicator of all ranks");
		goto fail;
	}
	*comm = (struct wlb_comm){
		.device = device, .trace = trace, .is_world = 1, .rank = rank, .size = size, .name = "world"};
	if (size == 1) {
		comm->transport = &wlb_transport_alone;
		comm->state = comm;
	} else {
		comm->transport = &wlb_transport_mpi;
		comm->state = wlb_transport_mpi_open(rank, size, error);
	}
	if (comm->state != NULL)
		return comm;
fail:
	wlb_comm_trace_free(trace);
	free(comm);
	return NULL;
}

struct wlb_comm *wlb_comm_split(struct wlb_comm *parent, int color, int key, const char *name, struct wlb_error *error)
{
	struct wlb_comm *comm = calloc(1, sizeof(*comm));
	if (comm == NULL) {
		wlb_fail(error, "out of memory for communicator %s", name);
		return NULL;
	}
	*comm = (struct wlb_comm){.transport = parent->transport, .device = parent->device, .trace = parent->trace};
	snprintf(comm->name, sizeof(comm->name), "%s", name);
	comm->state = parent->transport->split(parent->state, color, key, &comm->rank, &comm->size, error);
	if (comm->state != NULL)
		return comm;
	wlb_fail_in(error, "communicator %s cannot be split off %s", name, parent->name);
	free(comm);
	return NULL;
}

void wlb_comm_close(struct wlb_comm *comm)
{
	if (comm == NULL)
		return;
	comm->transport->close(comm->state, comm->is_world);
	if (comm->is_world)
		wlb_comm_trace_free(comm->trace);
	free(comm);
}

int wlb_comm_rank(const struct wlb_comm *comm)
{
	return comm->rank;
}

int wlb_comm_size(const struct wlb_comm *comm)
{
	return comm->size;
}

const char *wlb_comm_name(const struct wlb_comm *comm)
{
	return comm->name;
}

struct wlb_comm_trace *wlb_comm_get_trace(const struct wlb_comm *comm)
{
	return comm->trace;
}

static void enter(struct wlb_comm *comm, enum wlb_comm_kind kind, size_t bytes)
{
	wlb_comm_trace_enter(comm->trace, kind, comm->name, ++comm->seq, bytes);
}

/* Ends the call begun by enter(); a failure gets the collective's name before its cause. */
static int leave(struct wlb_comm *comm, enum wlb_comm_kind kind, int rc, struct wlb_error *error)
{
	wlb_comm_trace_leave(comm->trace);
	if (rc < 0)
		wlb_fail_in(error, "%s %llu of communicator %s (rank %d of %d)", wlb_comm_kind_name(kind),
		            (unsigned long long)comm->seq, comm->name, comm->rank, comm->size);
	return rc;
}

static size_t bytes_of(const struct wlb_comm *comm, size_t count)
{
	return count * wlb_dtype_bytes(comm->device->dtype);
}

/* Host memory for a buffer of the device: the buffer itself where the transport can reach it. */
static void *stage(struct wlb_comm *comm, const void *buffer, size_t bytes, int fill, struct wlb_error *error)
{
	if (comm->device->host_memory)
		return (void *)buffer;
	void *host = malloc(bytes);
	if (host == NULL)
		wlb_fail(error, "out of memory for staging %zu bytes", bytes);
	else if (fill)
		comm->device->ops->to_host(comm->device, host, buffer, bytes);
	return host;
}

static void unstage(struct wlb_comm *comm, void *host, void *buffer, size_t bytes, int write_back)
{
	if (host == buffer || host == NULL)
		return;
	if (write_back)
		comm->device->ops->to_device(comm->device, buffer, host, bytes);
	free(host);
}

/* What was queued on the device must be done before another rank sees the buffer. */
static int settle(struct wlb_comm *comm, struct wlb_error *error)
{
	return comm->device->ops->synchronize(comm->device, error);
}

int wlb_comm_all_reduce(struct wlb_comm *comm, void *buffer, size_t count, enum wlb_reduce op, struct wlb_error *error)
{
	size_t bytes = bytes_of(comm, count);
	int rc = settle(comm, error);
	enter(comm, WLB_COMM_ALL_REDUCE, bytes);
	void *host = rc == 0 ? stage(comm, buffer, bytes, 1, error) : NULL;
	rc = host == NULL ? -1 : comm->transport->all_reduce(comm->state, host, count, comm->device->dtype, op, error);
	unstage(comm, host, buffer, bytes, rc == 0);
	return leave(comm, WLB_COMM_ALL_REDUCE, rc, error);
}

int wlb_comm_all_reduce_double(struct wlb_comm *comm, double *buffer_host, size_t count, enum wlb_reduce op,
                               struct wlb_error *error)
{
	enter(comm, WLB_COMM_ALL_REDUCE_DOUBLE, count * sizeof(double));
	int rc = comm->transport->all_reduce(comm->state, buffer_host, count, WLB_FLOAT64, op, error);
	return leave(comm, WLB_COMM_ALL_REDUCE_DOUBLE, rc, error);
}

int wlb_comm_reduce_scatter(struct wlb_comm *comm, void *out, const void *in, size_t count, struct wlb_error *error)
{
	size_t bytes = bytes_of(comm, count), all = bytes * (size_t)comm->size;
	int rc = settle(comm, error);
	enter(comm, WLB_COMM_REDUCE_SCATTER, all);
	void *in_host = rc == 0 ? stage(comm, in, all, 1, error) : NULL;
	void *out_host = in_host != NULL ? stage(comm, out, bytes, 0, error) : NULL;
	rc = out_host == NULL ? -1
	                      : comm->transport->reduce_scatter(comm->state, out_host, in_host, count,
	                                                        comm->device->dtype, error);
	unstage(comm, in_host, (void *)in, all, 0);
	unstage(comm, out_host, out, bytes, rc == 0);
	return leave(comm, WLB_COMM_REDUCE_SCATTER, rc, error);
}

int wlb_comm_all_gather(struct wlb_comm *comm, void *out, const void *in, size_t count, struct wlb_error *error)
{
	size_t bytes = bytes_of(comm, count), all = bytes * (size_t)comm->size;
	int rc = settle(comm, error);
	enter(comm, WLB_COMM_ALL_GATHER, bytes);
	void *in_host = rc == 0 ? stage(comm, in, bytes, 1, error) : NULL;
	void *out_host = in_host != NULL ? stage(comm, out, all, 0, error) : NULL;
	rc = out_host == NULL ? -1 : comm->transport->all_gather(comm->state, out_host, in_host, bytes, error);
	unstage(comm, in_host, (void *)in, bytes, 0);
	unstage(comm, out_host, out, all, rc == 0);
	return leave(comm, WLB_COMM_ALL_GATHER, rc, error);
}

int wlb_comm_broadcast(struct wlb_comm *comm, void *buffer, size_t count, int root, struct wlb_error *error)
{
	size_t bytes = bytes_of(comm, count);
	int rc = settle(comm, error);
	enter(comm, WLB_COMM_BROADCAST, bytes);
	void *host = rc == 0 ? stage(comm, buffer, bytes, comm->rank == root, error) : NULL;
	rc = host == NULL ? -1 : comm->transport->broadcast(comm->state, host, bytes, root, error);
	unstage(comm, host, buffer, bytes, rc == 0 && comm->rank != root);
	return leave(comm, WLB_COMM_BROADCAST, rc, error);
}

int wlb_comm_broadcast_bytes(struct wlb_comm *comm, void *buffer_host, size_t bytes, int root, struct wlb_error *error)
{
	enter(comm, WLB_COMM_BROADCAST, bytes);
	int rc = comm->transport->broadcast(comm->state, buffer_host, bytes, root, error);
	return leave(comm, WLB_COMM_BROADCAST, rc, error);
}

int wlb_comm_send(struct wlb_comm *comm, const void *buffer, size_t count, int to, struct wlb_error *error)
{
	size_t bytes = bytes_of(comm, count);
	int rc = settle(comm, error);
	enter(comm, WLB_COMM_SEND, bytes);
	void *host = rc == 0 ? stage(comm, buffer, bytes, 1, error) : NULL;
	rc = host == NULL ? -1 : comm->transport->send(comm->state, host, bytes, to, error);
	unstage(comm, host, (void *)buffer, bytes, 0);
	return leave(comm, WLB_COMM_SEND, rc, error);
}

int wlb_comm_recv(struct wlb_comm *comm, void *buffer, size_t count, int from, struct wlb_error *error)
{
	size_t bytes = bytes_of(comm, count);
	int rc = settle(comm, error);
	enter(comm, WLB_COMM_RECV, bytes);
	void *host = rc == 0 ? stage(comm, buffer, bytes, 0, error) : NULL;
	rc = host == NULL ? -1 : comm->transport->recv(comm->state, host, bytes, from, error);
	unstage(comm, host, buffer, bytes, rc == 0);
	return leave(comm, WLB_COMM_RECV, rc, error);
}

int wlb_comm_barrier(struct wlb_comm *comm, struct wlb_error *error)
{
	enter(comm, WLB_COMM_BARRIER, 0);
	return leave(comm, WLB_COMM_BARRIER, comm->transport->barrier(comm->state, error), error);
}
