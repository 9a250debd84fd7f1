/* Calls that block: collectives, and a receive from another rank. */
#include "worker/comm/comm.h"
#include "worker/comm/communicator.h"
#include "worker/comm/staging.h"

/* A call that blocks from its beginning. */
static void enter(struct wlb_comm *comm, enum wlb_comm_kind kind, size_t bytes)
{
	struct wlb_comm_event call = wlb_comm_next_call(comm, kind, bytes);
	wlb_comm_enter(comm, &call);
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
	int rc = wlb_comm_finish_device(comm, error);
	enter(comm, WLB_COMM_ALL_REDUCE, bytes);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->in, buffer, bytes, 1, &host, error);
	if (rc == 0)
		rc = comm->transport->all_reduce(comm->state, host, count, comm->device->compute, op, error);
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
		return wlb_comm_copy_alone(comm, out, in, count);
	size_t bytes = wlb_comm_bytes(comm, count), all = bytes * (size_t)comm->size;
	void *in_host = NULL, *out_host = NULL;
	int rc = wlb_comm_finish_device(comm, error);
	enter(comm, WLB_COMM_REDUCE_SCATTER, all);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->in, in, all, 1, &in_host, error);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->out, out, bytes, 0, &out_host, error);
	if (rc == 0)
		rc = comm->transport->reduce_scatter(comm->state, out_host, in_host, count, comm->device->compute, error);
	if (rc == 0)
		wlb_unstage(comm->device, out_host, out, bytes);
	return wlb_comm_leave(comm, rc, error);
}

int wlb_comm_all_gather(struct wlb_comm *comm, void *out, const void *in, size_t count, struct wlb_error *error)
{
	if (comm->size == 1)
		return wlb_comm_copy_alone(comm, out, in, count);
	size_t bytes = wlb_comm_bytes(comm, count), all = bytes * (size_t)comm->size, own = bytes * (size_t)comm->rank;
	void *host = NULL;
	int rc = wlb_comm_finish_device(comm, error);
	enter(comm, WLB_COMM_ALL_GATHER, bytes);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->out, out, all, 0, &host, error);
	int in_place = host != out || in == (char *)out + own;
	if (rc == 0 && host != out)
		comm->device->ops->to_host(comm->device, (char *)host + own, in, bytes);
	if (rc == 0)
		rc = comm->transport->all_gather(comm->state, host, in_place ? NULL : in, count, comm->device->compute,
		                                 error);
	if (rc == 0)
		wlb_unstage(comm->device, host, out, all);
	return wlb_comm_leave(comm, rc, error);
}

int wlb_comm_recv(struct wlb_comm *comm, void *buffer, size_t count, int from, struct wlb_error *error)
{
	if (comm->size == 1)
		return fail_alone(comm, WLB_COMM_RECV, from, "receive from", error);
	size_t bytes = wlb_comm_bytes(comm, count);
	void *host = NULL;
	int rc = wlb_comm_finish_device(comm, error);
	enter(comm, WLB_COMM_RECV, bytes);
	if (rc == 0)
		rc = wlb_stage(comm->device, &comm->out, buffer, bytes, 0, &host, error);
	if (rc == 0)
		rc = comm->transport->recv(comm->state, host, bytes, from, error);
	if (rc == 0)
		wlb_unstage(comm->device, host, buffer, bytes);
	return wlb_comm_leave(comm, rc, error);
}
