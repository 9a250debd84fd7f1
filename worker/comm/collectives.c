/* The calls of comm.h: those on numbers of the host, and the data calls, each as a request to the transport. */
#include "worker/comm/comm.h"
#include "worker/comm/communicator.h"
#include "worker/comm/mpi_group.h"
#include "worker/comm/requests.h"

int wlb_comm_all_reduce_double(struct wlb_comm *comm, double *buffer_host, size_t count, enum wlb_reduce op,
                               struct wlb_error *error)
{
	if (comm->size == 1)
		return 0;
	struct wlb_trace_event call = wlb_comm_next_call(comm, WLB_COMM_ALL_REDUCE_DOUBLE, count * sizeof(double));
	wlb_comm_enter(comm, &call);
	return wlb_comm_leave(comm, wlb_mpi_all_reduce_double(comm->members.mpi, buffer_host, count, op, error), error);
}

static struct wlb_transport_request all_reduce(void *buffer, size_t count, enum wlb_dtype dtype, enum wlb_reduce op)
{
	return (struct wlb_transport_request){
		.kind = WLB_COMM_ALL_REDUCE, .out = buffer, .in = buffer, .count = count, .dtype = dtype, .op = op};
}

static struct wlb_transport_request reduce_scatter(void *out, const void *in, size_t count, enum wlb_dtype dtype)
{
	return (struct wlb_transport_request){
		.kind = WLB_COMM_REDUCE_SCATTER, .out = out, .in = in, .count = count, .dtype = dtype};
}

static struct wlb_transport_request all_gather(void *out, const void *in, size_t count, enum wlb_dtype dtype)
{
	return (struct wlb_transport_request){
		.kind = WLB_COMM_ALL_GATHER, .out = out, .in = in, .count = count, .dtype = dtype};
}

static struct wlb_transport_request receive(void *buffer, size_t count, enum wlb_dtype dtype, int from)
{
	return (struct wlb_transport_request){
		.kind = WLB_COMM_RECV, .out = buffer, .count = count, .dtype = dtype, .peer = from};
}

struct wlb_comm_request *wlb_comm_all_reduce_start(struct wlb_comm *comm, void *buffer, size_t count,
                                                   enum wlb_dtype dtype, enum wlb_reduce op, struct wlb_error *error)
{
	struct wlb_transport_request wanted = all_reduce(buffer, count, dtype, op);
	return wlb_comm_start(comm, &wanted, error);
}

struct wlb_comm_request *wlb_comm_reduce_scatter_start(struct wlb_comm *comm, void *out, const void *in, size_t count,
                                                       enum wlb_dtype dtype, struct wlb_error *error)
{
	struct wlb_transport_request wanted = reduce_scatter(out, in, count, dtype);
	return wlb_comm_start(comm, &wanted, error);
}

struct wlb_comm_request *wlb_comm_all_gather_start(struct wlb_comm *comm, void *out, const void *in, size_t count,
                                                   enum wlb_dtype dtype, struct wlb_error *error)
{
	struct wlb_transport_request wanted = all_gather(out, in, count, dtype);
	return wlb_comm_start(comm, &wanted, error);
}

struct wlb_comm_request *wlb_comm_send_start(struct wlb_comm *comm, const void *buffer, size_t count,
                                             enum wlb_dtype dtype, int to, struct wlb_error *error)
{
	struct wlb_transport_request wanted = {
		.kind = WLB_COMM_SEND, .in = buffer, .count = count, .dtype = dtype, .peer = to};
	return wlb_comm_start(comm, &wanted, error);
}

struct wlb_comm_request *wlb_comm_recv_start(struct wlb_comm *comm, void *buffer, size_t count, enum wlb_dtype dtype,
                                             int from, struct wlb_error *error)
{
	struct wlb_transport_request wanted = receive(buffer, count, dtype, from);
	return wlb_comm_start(comm, &wanted, error);
}

/* Starts the call and awaits it at once. */
static int run(struct wlb_comm *comm, struct wlb_transport_request wanted, struct wlb_error *error)
{
	wanted.blocking = 1;
	struct wlb_comm_request *request = wlb_comm_start(comm, &wanted, error);
	return request != NULL ? wlb_comm_wait(request, error) : -1;
}

/* Starts the call; where its transport makes the host wait, awaits it at once. */
static int run_overlapped(struct wlb_comm *comm, struct wlb_transport_request wanted, struct wlb_comm_request **request,
                          struct wlb_error *error)
{
	*request = NULL;
	if (wlb_comm_blocks_host(comm))
		return run(comm, wanted, error);
	*request = wlb_comm_start(comm, &wanted, error);
	return *request != NULL ? 0 : -1;
}

int wlb_comm_reduce_scatter_overlapped(struct wlb_comm *comm, void *out, const void *in, size_t count,
                                       enum wlb_dtype dtype, struct wlb_comm_request **request, struct wlb_error *error)
{
	return run_overlapped(comm, reduce_scatter(out, in, count, dtype), request, error);
}

int wlb_comm_all_gather_overlapped(struct wlb_comm *comm, void *out, const void *in, size_t count, enum wlb_dtype dtype,
                                   struct wlb_comm_request **request, struct wlb_error *error)
{
	return run_overlapped(comm, all_gather(out, in, count, dtype), request, error);
}

int wlb_comm_all_gather_behind(struct wlb_comm *comm, struct wlb_queue *behind, void *out, const void *in, size_t count,
                               enum wlb_dtype dtype, struct wlb_comm_request **request, struct wlb_error *error)
{
	struct wlb_transport_request wanted = all_gather(out, in, count, dtype);
	wanted.behind = behind;
	return run_overlapped(comm, wanted, request, error);
}

int wlb_comm_all_reduce(struct wlb_comm *comm, void *buffer, size_t count, enum wlb_dtype dtype, enum wlb_reduce op,
                        struct wlb_error *error)
{
	return run(comm, all_reduce(buffer, count, dtype, op), error);
}

int wlb_comm_reduce_scatter(struct wlb_comm *comm, void *out, const void *in, size_t count, enum wlb_dtype dtype,
                            struct wlb_error *error)
{
	return run(comm, reduce_scatter(out, in, count, dtype), error);
}

int wlb_comm_all_gather(struct wlb_comm *comm, void *out, const void *in, size_t count, enum wlb_dtype dtype,
                        struct wlb_error *error)
{
	return run(comm, all_gather(out, in, count, dtype), error);
}

int wlb_comm_recv(struct wlb_comm *comm, void *buffer, size_t count, enum wlb_dtype dtype, int from,
                  struct wlb_error *error)
{
	return run(comm, receive(buffer, count, dtype, from), error);
}
