#include "worker/comm/communicator.h"

#include <stdio.h>
#include <stdlib.h>

#include "worker/train/seconds.h"

enum { TRACE_EVENTS = 4096 };

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
	if (size == 1)
		return comm;
	comm->transport = &wlb_transport_mpi;
	comm->state = wlb_transport_mpi_open(rank, size, error);
	if (comm->state != NULL)
		return comm;
fail:
	wlb_comm_trace_free(trace);
	free(comm);
	return NULL;
}

/* The group's state from the transport of its parent; a rank that is alone in it needs none. */
static int split_state(struct wlb_comm *comm, const struct wlb_comm *parent, int color, int key,
                       struct wlb_error *error)
{
	comm->size = 1;
	if (parent->size == 1)
		return 0;
	void *state = parent->transport->split(parent->state, color, key, &comm->rank, &comm->size, error);
	if (state == NULL)
		return wlb_fail_in(error, "communicator %s cannot be split off %s", comm->name, parent->name);
	if (comm->size == 1) {
		parent->transport->close(state, 0);
		return 0;
	}
	comm->transport = parent->transport;
	comm->state = state;
	return 0;
}

struct wlb_comm *wlb_comm_split(struct wlb_comm *parent, int color, int key, const char *name, struct wlb_error *error)
{
	struct wlb_comm *comm = calloc(1, sizeof(*comm));
	if (comm == NULL) {
		wlb_fail(error, "out of memory for communicator %s", name);
		return NULL;
	}
	*comm = (struct wlb_comm){.device = parent->device, .trace = parent->trace};
	snprintf(comm->name, sizeof(comm->name), "%s", name);
	if (split_state(comm, parent, color, key, error) == 0)
		return comm;
	free(comm);
	return NULL;
}

void wlb_comm_close(struct wlb_comm *comm)
{
	if (comm == NULL)
		return;
	wlb_comm_requests_free(comm);
	wlb_staging_free(&comm->in);
	wlb_staging_free(&comm->out);
	if (comm->size > 1)
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

double wlb_comm_seconds(const struct wlb_comm *comm)
{
	return comm->held_up.now_s;
}

double wlb_comm_busy_s(const struct wlb_comm *comm)
{
	return comm->held_up.busy_s;
}

struct wlb_comm_clock wlb_comm_clock(const struct wlb_comm *comm)
{
	return (struct wlb_comm_clock){.now_s = wlb_now_s(), .busy_s = comm->device->ops->busy_s(comm->device)};
}

double wlb_comm_count(struct wlb_comm *comm, const struct wlb_comm_clock *since)
{
	struct wlb_comm_clock now = wlb_comm_clock(comm);
	comm->held_up.now_s += now.now_s - since->now_s;
	comm->held_up.busy_s += now.busy_s - since->busy_s;
	return now.now_s;
}

struct wlb_comm_event wlb_comm_next_call(struct wlb_comm *comm, enum wlb_comm_kind kind, size_t bytes)
{
	struct wlb_comm_event call = {.kind = kind, .seq = ++comm->seq, .bytes = bytes};
	snprintf(call.comm, sizeof(call.comm), "%s", comm->name);
	return call;
}

void wlb_comm_enter(struct wlb_comm *comm, const struct wlb_comm_event *call)
{
	comm->call = *call;
	comm->blocked = wlb_comm_clock(comm);
	comm->call.blocked_s = comm->blocked.now_s;
	if (comm->call.entered_s == 0.0)
		comm->call.entered_s = comm->call.blocked_s;
	wlb_comm_trace_enter(comm->trace, &comm->call);
}

int wlb_comm_leave(struct wlb_comm *comm, int rc, struct wlb_error *error)
{
	wlb_comm_trace_leave(comm->trace, wlb_comm_count(comm, &comm->blocked));
	return rc < 0 ? wlb_comm_fail(comm, &comm->call, error) : rc;
}

int wlb_comm_fail(const struct wlb_comm *comm, const struct wlb_comm_event *call, struct wlb_error *error)
{
	return wlb_fail_in(error, "%s %llu of communicator %s (rank %d of %d)", wlb_comm_kind_name(call->kind),
	                   (unsigned long long)call->seq, comm->name, comm->rank, comm->size);
}

/* A call that blocks from its beginning. */
static void enter(struct wlb_comm *comm, enum wlb_comm_kind kind, size_t bytes)
{
	struct wlb_comm_event call = wlb_comm_next_call(comm, kind, bytes);
	wlb_comm_enter(comm, &call);
}

size_t wlb_comm_bytes(const struct wlb_comm *comm, size_t count)
{
	return count * wlb_dtype_bytes(comm->device->dtype);
}

int wlb_comm_settle(struct wlb_comm *comm, struct wlb_error *error)
{
	return comm->device->ops->synchronize(comm->device, error);
}

int wlb_comm_keep(struct wlb_comm *comm, void *out, const void *in, size_t count)
{
	if (out != in)
		comm->device->ops->copy(comm->device, out, in, wlb_comm_bytes(comm, count));
	return 0;
}

int wlb_comm_refuse_alone(int rank, const char *what, struct wlb_error *error)
{
	return wlb_fail(error, "there is no rank %d to %s: this rank is alone", rank, what);
}

static int fail_alone(struct wlb_comm *comm, enum wlb_comm_kind kind, int rank, const char *what,
                      struct wlb_error *error)
{
	struct wlb_comm_event call = wlb_comm_next_call(comm, kind, 0);
	wlb_comm_refuse_alone(rank, what, error);
	return wlb_comm_fail(comm, &call, error);
}

int wlb_comm_all_reduce(struct wlb_comm *comm, void *buffer, size_t count, enum wlb_reduce op, struct wlb_error *error)
{
	if (comm->size == 1)
		return 0;
	size_t bytes = wlb_comm_bytes(comm, count);
	void *host = NULL;
	int rc = wlb_comm_settle(comm, error);
	enter(comm, WLB_COMM_ALL_REDUCE, bytes);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->in, buffer, bytes, 1, &host, error);
	if (rc == 0)
		rc = comm->transport->all_reduce(comm->state, host, count, comm->device->dtype, op, error);
	if (rc == 0)
		wlb_unstage(comm->device, host, buffer, bytes);
	return wlb_comm_leave(comm, rc, error);
}

int wlb_comm_all_reduce_double(struct wlb_comm *comm, double *buffer_host, size_t count, enum wlb_reduce op,
                               struct wlb_error *error)
{
	if (comm->size == 1)
		return 0;
	enter(comm, WLB_COMM_ALL_REDUCE_DOUBLE, count * sizeof(double));
	int rc = comm->transport->all_reduce(comm->state, buffer_host, count, WLB_FLOAT64, op, error);
	return wlb_comm_leave(comm, rc, error);
}

int wlb_comm_reduce_scatter(struct wlb_comm *comm, void *out, const void *in, size_t count, struct wlb_error *error)
{
	if (comm->size == 1)
		return wlb_comm_keep(comm, out, in, count);
	size_t bytes = wlb_comm_bytes(comm, count), all = bytes * (size_t)comm->size;
	void *in_host = NULL, *out_host = NULL;
	int rc = wlb_comm_settle(comm, error);
	enter(comm, WLB_COMM_REDUCE_SCATTER, all);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->in, in, all, 1, &in_host, error);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->out, out, bytes, 0, &out_host, error);
	if (rc == 0)
		rc = comm->transport->reduce_scatter(comm->state, out_host, in_host, count, comm->device->dtype, error);
	if (rc == 0)
		wlb_unstage(comm->device, out_host, out, bytes);
	return wlb_comm_leave(comm, rc, error);
}

int wlb_comm_all_gather(struct wlb_comm *comm, void *out, const void *in, size_t count, struct wlb_error *error)
{
	if (comm->size == 1)
		return wlb_comm_keep(comm, out, in, count);
	size_t bytes = wlb_comm_bytes(comm, count), all = bytes * (size_t)comm->size, own = bytes * (size_t)comm->rank;
	void *host = NULL;
	int rc = wlb_comm_settle(comm, error);
	enter(comm, WLB_COMM_ALL_GATHER, bytes);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->out, out, all, 0, &host, error);
	int in_place = host != out || in == (char *)out + own;
	if (rc == 0 && host != out)
		comm->device->ops->to_host(comm->device, (char *)host + own, in, bytes);
	if (rc == 0)
		rc = comm->transport->all_gather(comm->state, host, in_place ? NULL : in, count, comm->device->dtype,
		                                 error);
	if (rc == 0)
		wlb_unstage(comm->device, host, out, all);
	return wlb_comm_leave(comm, rc, error);
}

int wlb_comm_broadcast(struct wlb_comm *comm, void *buffer, size_t count, int root, struct wlb_error *error)
{
	if (comm->size == 1)
		return 0;
	size_t bytes = wlb_comm_bytes(comm, count);
	void *host = NULL;
	int rc = wlb_comm_settle(comm, error);
	enter(comm, WLB_COMM_BROADCAST, bytes);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->in, buffer, bytes, comm->rank == root, &host, error);
	if (rc == 0)
		rc = comm->transport->broadcast(comm->state, host, bytes, root, error);
	if (rc == 0 && comm->rank != root)
		wlb_unstage(comm->device, host, buffer, bytes);
	return wlb_comm_leave(comm, rc, error);
}

int wlb_comm_broadcast_bytes(struct wlb_comm *comm, void *buffer_host, size_t bytes, int root, struct wlb_error *error)
{
	if (comm->size == 1)
		return 0;
	enter(comm, WLB_COMM_BROADCAST, bytes);
	int rc = comm->transport->broadcast(comm->state, buffer_host, bytes, root, error);
	return wlb_comm_leave(comm, rc, error);
}

int wlb_comm_send(struct wlb_comm *comm, const void *buffer, size_t count, int to, struct wlb_error *error)
{
	if (comm->size == 1)
		return fail_alone(comm, WLB_COMM_SEND, to, "send to", error);
	size_t bytes = wlb_comm_bytes(comm, count);
	void *host = NULL;
	int rc = wlb_comm_settle(comm, error);
	enter(comm, WLB_COMM_SEND, bytes);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->in, buffer, bytes, 1, &host, error);
	if (rc == 0)
		rc = comm->transport->send(comm->state, host, bytes, to, error);
	return wlb_comm_leave(comm, rc, error);
}

int wlb_comm_recv(struct wlb_comm *comm, void *buffer, size_t count, int from, struct wlb_error *error)
{
	if (comm->size == 1)
		return fail_alone(comm, WLB_COMM_RECV, from, "receive from", error);
	size_t bytes = wlb_comm_bytes(comm, count);
	void *host = NULL;
	int rc = wlb_comm_settle(comm, error);
	enter(comm, WLB_COMM_RECV, bytes);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->out, buffer, bytes, 0, &host, error);
	if (rc == 0)
		rc = comm->transport->recv(comm->state, host, bytes, from, error);
	if (rc == 0)
		wlb_unstage(comm->device, host, buffer, bytes);
	return wlb_comm_leave(comm, rc, error);
}

int wlb_comm_barrier(struct wlb_comm *comm, struct wlb_error *error)
{
	if (comm->size == 1)
		return 0;
	enter(comm, WLB_COMM_BARRIER, 0);
	return wlb_comm_leave(comm, comm->transport->barrier(comm->state, error), error);
}
