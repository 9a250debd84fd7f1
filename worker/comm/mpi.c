/* The transport over MPI. MPI reads and writes host memory: buffers of a device with memory of its own are staged. */
#include <limits.h>
#include <stdlib.h>

#include "libwlb/capacity.h"
#include "worker/comm/mpi_bfloat16.h"
#include "worker/comm/mpi_error.h"
#include "worker/comm/mpi_group.h"
#include "worker/comm/transport.h"

/* MPI counts are int: longer buffers go in pieces of this many elements. */
#define PIECE_ELEMENTS ((size_t)1 << 30)

enum { TAG = 1 };

/* The host copy of a buffer in device memory that MPI cannot access, in pinned memory. It grows to the largest size
 * used and is kept. */
struct staging {
	void *memory;
	size_t capacity_bytes;
};

static void free_staging(struct wlb_device *device, struct staging *staging)
{
	device->ops->release_host(device, staging->memory);
	*staging = (struct staging){0};
}

/* Reserves `bytes`; what was in it is lost. No copy from or to it may be in progress. Returns -1 if out of
 * memory. */
static int reserve_staging(struct wlb_device *device, struct staging *staging, size_t bytes, struct wlb_error *error)
{
	if (bytes <= staging->capacity_bytes)
		return 0;
	free_staging(device, staging);
	staging->memory = device->ops->alloc_host(device, bytes, error);
	if (staging->memory == NULL)
		return wlb_fail_in(error, "staging on the host");
	staging->capacity_bytes = bytes;
	return 0;
}

struct handle {
	struct wlb_mpi_group *group;
	MPI_Request *pieces; /* the requests of the call in progress, one for each piece */
	size_t count;
	size_t capacity;
	const void *in_host; /* where MPI reads and writes: the buffers of the call, or `in` and `out` */
	void *out_host;
	struct staging in, out;
	struct wlb_event *copied; /* behind the last copy from or to them */
};

static void *open_group(const struct wlb_transport_group *group, struct wlb_device *device, struct wlb_queue *queue,
                        double limit_s, struct wlb_error *error)
{
	(void)limit_s, (void)error;
	group->mpi->device = device;
	group->mpi->queue = queue;
	return group->mpi;
}

static int connect_groups(void *const *states, int count, int *which, struct wlb_error *error)
{
	for (*which = 0; *which < count; (*which)++)
		if (wlb_mpi_connect(states[*which], error) < 0)
			return -1;
	return 0;
}

static void close_group(void *state)
{
	(void)state; /* the caller's */
}

static void handle_free(void *object)
{
	struct handle *h = object;
	if (h == NULL)
		return;
	struct wlb_device *device = h->group->device;
	free_staging(device, &h->in);
	free_staging(device, &h->out);
	device->ops->event_free(device, h->copied);
	free(h->pieces);
	free(h);
}

static void *handle_new(void *state, struct wlb_error *error)
{
	struct wlb_mpi_group *group = state;
	struct handle *h = calloc(1, sizeof(*h));
	if (h == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	h->group = group;
	h->copied = group->device->ops->event_new(group->device, 0, error);
	if (h->copied != NULL)
		return h;
	handle_free(h);
	return NULL;
}

/* MPI's type of the elements, and the operation that combines two of them. */
struct type {
	MPI_Datatype type;
	MPI_Op op;
};

static int find_type(const struct wlb_transport_request *request, struct type *type, struct wlb_error *error)
{
	enum wlb_reduce op = request->kind == WLB_COMM_ALL_REDUCE ? request->op : WLB_SUM;
	type->op = op == WLB_MAX ? MPI_MAX : MPI_SUM;
	switch (request->dtype) {
	case WLB_FLOAT32:
		type->type = MPI_FLOAT;
		return 0;
	case WLB_FLOAT64:
		type->type = MPI_DOUBLE;
		return 0;
	case WLB_BFLOAT16:
		*type = (struct type){.type = MPI_UINT16_T, .op = wlb_mpi_bfloat16_op(op)};
		return 0;
	}
	return wlb_dtype_check(request->dtype, error);
}

/* Bytes of a rank's part, and of the call's input and output. */
struct sizes {
	size_t part, in, out;
};

static struct sizes sizes_of(const struct handle *h, const struct wlb_transport_request *request)
{
	int ranks = 1;
	MPI_Comm_size(h->group->comm, &ranks);
	size_t part = request->count * wlb_dtype_bytes(request->dtype), all = part * (size_t)ranks;
	return (struct sizes){.part = part,
	                      .in = request->kind == WLB_COMM_REDUCE_SCATTER ? all : part,
	                      .out = request->kind == WLB_COMM_ALL_GATHER ? all : part};
}

/* Copies what is to be sent to the host. The host waits for that, and also for the last copy from `out` to the device,
 * which MPI would overwrite. */
static int stage(struct handle *h, const struct wlb_transport_request *request, struct wlb_error *error)
{
	struct wlb_device *device = h->group->device;
	struct sizes bytes = sizes_of(h, request);
	int rank = 0, in_out = request->kind == WLB_COMM_ALL_REDUCE || request->kind == WLB_COMM_ALL_GATHER;
	MPI_Comm_rank(h->group->comm, &rank);
	if (device->ops->event_wait(device, h->copied, error) < 0)
		return -1;
	if (request->in != NULL && !in_out && reserve_staging(device, &h->in, bytes.in, error) < 0)
		return -1;
	if (request->out != NULL && reserve_staging(device, &h->out, bytes.out, error) < 0)
		return -1;
	h->out_host = h->out.memory;
	if (request->in == NULL)
		return 0;
	char *to = in_out ? h->out.memory : h->in.memory;
	if (request->kind == WLB_COMM_ALL_GATHER)
		to += bytes.part * (size_t)rank;
	h->in_host = to;
	device->ops->to_host_start(device, h->group->queue, to, request->in, bytes.in);
	device->ops->event_record(device, h->copied, h->group->queue);
	return device->ops->event_wait(device, h->copied, error);
}

static int prepare(void *object, const struct wlb_transport_request *request, struct wlb_error *error)
{
	struct handle *h = object;
	struct wlb_device *device = h->group->device;
	if (!device->host_memory)
		return stage(h, request, error);
	h->in_host = request->in;
	h->out_host = request->out;
	return device->ops->synchronize(device, error);
}

static size_t pieces_of(const struct wlb_transport_request *request)
{
	return (request->count + PIECE_ELEMENTS - 1) / PIECE_ELEMENTS;
}

static int reserve_pieces(struct handle *h, size_t count, struct wlb_error *error)
{
	h->count = 0;
	if (wlb_grow((void **)&h->pieces, &h->capacity, count, sizeof(*h->pieces)) < 0)
		return wlb_fail(error, "out of memory for %zu requests of MPI", count);
	return 0;
}

/* The elements of piece i of the call: their number, and where they begin in a buffer. */
struct piece {
	int count;
	size_t offset_bytes;
};

static struct piece piece_of(const struct wlb_transport_request *request, size_t i)
{
	size_t first = i * PIECE_ELEMENTS, left = request->count - first;
	return (struct piece){.count = (int)(left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS),
	                      .offset_bytes = first * wlb_dtype_bytes(request->dtype)};
}

/* Starts a send, a receive or an all_reduce, in pieces. */
static int start_pieces(struct handle *h, const struct wlb_transport_request *request, const struct type *type,
                        struct wlb_error *error)
{
	if (reserve_pieces(h, pieces_of(request), error) < 0)
		return -1;
	MPI_Comm comm = h->group->comm;
	for (size_t i = 0; i < pieces_of(request); i++) {
		struct piece piece = piece_of(request, i);
		char *out = (char *)h->out_host + piece.offset_bytes;
		const char *in = (const char *)h->in_host + piece.offset_bytes;
		MPI_Request *piece_request = &h->pieces[i];
		int code = MPI_SUCCESS;
		if (request->kind == WLB_COMM_SEND)
			code = MPI_Isend(in, piece.count, type->type, request->peer, TAG, comm, piece_request);
		else if (request->kind == WLB_COMM_RECV)
			code = MPI_Irecv(out, piece.count, type->type, request->peer, TAG, comm, piece_request);
		else
			code = MPI_Iallreduce(MPI_IN_PLACE, out, piece.count, type->type, type->op, comm,
			                      piece_request);
		if (wlb_mpi_check(code, error) < 0)
			return -1;
		h->count++;
	}
	return 0;
}

/* Returns what an all_gather sends: MPI_IN_PLACE where this rank's part is already in the output. */
static const void *gathered_from(const struct handle *h, const struct wlb_transport_request *request)
{
	int rank = 0;
	MPI_Comm_rank(h->group->comm, &rank);
	const char *own = (const char *)h->out_host + sizes_of(h, request).part * (size_t)rank;
	return h->in_host == own ? MPI_IN_PLACE : h->in_host;
}

static int start_scatter_or_gather(struct handle *h, const struct wlb_transport_request *request,
                                   const struct type *type, struct wlb_error *error)
{
	int count = (int)request->count;
	if (reserve_pieces(h, 1, error) < 0)
		return -1;
	int code = request->kind == WLB_COMM_REDUCE_SCATTER
	                   ? MPI_Ireduce_scatter_block(h->in_host, h->out_host, count, type->type, type->op,
	                                               h->group->comm, h->pieces)
	                   : MPI_Iallgather(gathered_from(h, request), count, type->type, h->out_host, count,
	                                    type->type, h->group->comm, h->pieces);
	if (wlb_mpi_check(code, error) < 0)
		return -1;
	h->count = 1;
	return 0;
}

static int is_message(const struct wlb_transport_request *request)
{
	return request->kind == WLB_COMM_SEND || request->kind == WLB_COMM_RECV;
}

/* A collective that blocks is left to finish(): MPI's blocking functions choose better algorithms than the others. */
static int start(void *object, const struct wlb_transport_request *request, struct wlb_error *error)
{
	struct handle *h = object;
	struct type type;
	if (find_type(request, &type, error) < 0)
		return -1;
	if (is_message(request))
		return start_pieces(h, request, &type, error);
	if (request->kind != WLB_COMM_ALL_REDUCE && request->count > INT_MAX)
		return wlb_fail(error, "%zu elements a rank: MPI takes at most %d", request->count, INT_MAX);
	if (request->blocking)
		return 0;
	return request->kind == WLB_COMM_ALL_REDUCE ? start_pieces(h, request, &type, error)
	                                            : start_scatter_or_gather(h, request, &type, error);
}

static int run_collective(struct handle *h, const struct wlb_transport_request *request, struct wlb_error *error)
{
	struct type type;
	if (find_type(request, &type, error) < 0)
		return -1;
	MPI_Comm comm = h->group->comm;
	int count = (int)request->count, code = MPI_SUCCESS;
	if (request->kind == WLB_COMM_REDUCE_SCATTER)
		code = MPI_Reduce_scatter_block(h->in_host, h->out_host, count, type.type, type.op, comm);
	else if (request->kind == WLB_COMM_ALL_GATHER)
		code = MPI_Allgather(gathered_from(h, request), count, type.type, h->out_host, count, type.type, comm);
	for (size_t i = 0; request->kind == WLB_COMM_ALL_REDUCE && i < pieces_of(request) && code == MPI_SUCCESS; i++) {
		struct piece piece = piece_of(request, i);
		code = MPI_Allreduce(MPI_IN_PLACE, (char *)h->out_host + piece.offset_bytes, piece.count, type.type,
		                     type.op, comm);
	}
	return wlb_mpi_check(code, error);
}

static int test(void *object, struct wlb_error *error)
{
	struct handle *h = object;
	int done = 1;
	for (size_t i = 0; i < h->count; i++) {
		int piece_done = 0;
		if (wlb_mpi_check(MPI_Test(&h->pieces[i], &piece_done, MPI_STATUS_IGNORE), error) < 0)
			return -1;
		done &= piece_done;
	}
	return done;
}

static int finish(void *object, const struct wlb_transport_request *request, struct wlb_error *error)
{
	struct handle *h = object;
	if (request->blocking && !is_message(request)) {
		if (run_collective(h, request, error) < 0)
			return -1;
	} else {
		for (size_t i = 0; i < h->count; i++)
			if (wlb_mpi_check(MPI_Wait(&h->pieces[i], MPI_STATUS_IGNORE), error) < 0)
				return -1;
	}
	struct wlb_device *device = h->group->device;
	if (device->host_memory || request->out == NULL)
		return 0;
	device->ops->to_device(device, h->group->queue, request->out, h->out_host, sizes_of(h, request).out);
	device->ops->event_record(device, h->copied, h->group->queue);
	return 0;
}

const struct wlb_transport wlb_transport_mpi = {
	.open = open_group,
	.connect = connect_groups,
	.close = close_group,
	.handle_new = handle_new,
	.handle_free = handle_free,
	.prepare = prepare,
	.start = start,
	.test = test,
	.finish = finish,
};
