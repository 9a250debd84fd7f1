#include <limits.h>
#include <malloc.h>
#include <mpi.h>
#include <stdlib.h>

#include "libwlb/capacity.h"
#include "worker/comm/mpi_components.h"
#include "worker/comm/transport.h"

/* MPI counts are int: longer buffers go in pieces of this many elements. */
#define PIECE_ELEMENTS ((size_t)1 << 30)

enum { TAG = 1 };

struct mpi_group {
	MPI_Comm comm;
};

/* The type behind the handle of a started call: one request of MPI for each piece. */
struct mpi_started {
	MPI_Request *pieces;
	size_t count;
	size_t capacity;
};

static int check(int code, struct wlb_error *error)
{
	if (code == MPI_SUCCESS)
		return 0;
	char text[MPI_MAX_ERROR_STRING] = "";
	int length = 0;
	MPI_Error_string(code, text, &length);
	return wlb_fail(error, "%s", text);
}

static struct mpi_group *group_new(MPI_Comm comm, struct wlb_error *error)
{
	struct mpi_group *group = calloc(1, sizeof(*group));
	if (group == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	group->comm = comm;
	/* MPI returns errors; the caller adds the name of the collective. */
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	return group;
}

/* Open MPI allocates a buffer in each reduce-scatter and frees it. By default malloc gives a large one back to the
 * system, and its pages are then zeroed again in every call, which takes several times as long as the messages. */
static void keep_freed_memory(void)
{
	enum { MOST_KEPT = 32 << 20 }; /* the largest M_MMAP_THRESHOLD that malloc takes */
	mallopt(M_MMAP_THRESHOLD, MOST_KEPT);
	mallopt(M_TRIM_THRESHOLD, 4 * MOST_KEPT);
}

void *wlb_transport_mpi_open(int rank, int size, struct wlb_error *error)
{
	/* Where a host runs more ranks than it has cores, waiting ranks must yield the core to working ones; a setting
	 * of the user is kept. */
	setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
	keep_freed_memory();
	int provided = MPI_THREAD_SINGLE;
	if (check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), error) < 0)
		return NULL;
	wlb_mpi_keep_components();
	int mpi_rank = -1, mpi_size = -1;
	MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
	if (mpi_rank != rank || mpi_size != size) {
		wlb_fail(error,
		         "MPI says rank %d of %d, the launcher rank %d of %d: start with srun --mpi=pmix or with the "
		         "mpirun of the MPI that wlb-worker was built with",
		         mpi_rank, mpi_size, rank, size);
		return NULL;
	}
	return group_new(MPI_COMM_WORLD, error);
}

static void *mpi_split(void *state, int color, int key, int *rank, int *size, struct wlb_error *error)
{
	struct mpi_group *parent = state;
	MPI_Comm comm = MPI_COMM_NULL;
	if (check(MPI_Comm_split(parent->comm, color, key, &comm), error) < 0)
		return NULL;
	MPI_Comm_rank(comm, rank);
	MPI_Comm_size(comm, size);
	return group_new(comm, error);
}

static void mpi_close(void *state, int is_world)
{
	struct mpi_group *group = state;
	if (is_world)
		MPI_Finalize();
	else
		MPI_Comm_free(&group->comm);
	free(group);
}

static int find_type(enum wlb_dtype dtype, MPI_Datatype *type, struct wlb_error *error)
{
	switch (dtype) {
	case WLB_FLOAT32:
		*type = MPI_FLOAT;
		return 0;
	case WLB_FLOAT64:
		*type = MPI_DOUBLE;
		return 0;
	case WLB_BFLOAT16: /* MPI has no such type, so it could not sum it */
		wlb_fail(error, "element type bfloat16: MPI has no such type");
		return -1;
	}
	wlb_dtype_check(dtype, error);
	return -1;
}

static size_t piece(size_t left)
{
	return left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS;
}

static int mpi_all_reduce(void *state, void *buffer, size_t count, enum wlb_dtype dtype, enum wlb_reduce op,
                          struct wlb_error *error)
{
	struct mpi_group *group = state;
	MPI_Datatype type;
	if (find_type(dtype, &type, error) < 0)
		return -1;
	char *at = buffer;
	for (size_t n; count > 0; count -= n, at += n * wlb_dtype_bytes(dtype)) {
		n = piece(count);
		if (check(MPI_Allreduce(MPI_IN_PLACE, at, (int)n, type, op == WLB_MAX ? MPI_MAX : MPI_SUM, group->comm),
		          error) < 0)
			return -1;
	}
	return 0;
}

static int too_long(size_t count, struct wlb_error *error)
{
	return wlb_fail(error, "%zu elements a rank: this transport takes at most %d", count, INT_MAX);
}

static int mpi_reduce_scatter(void *state, void *out, const void *in, size_t count, enum wlb_dtype dtype,
                              struct wlb_error *error)
{
	struct mpi_group *group = state;
	MPI_Datatype type;
	if (find_type(dtype, &type, error) < 0)
		return -1;
	if (count > INT_MAX)
		return too_long(count, error);
	return check(MPI_Reduce_scatter_block(in, out, (int)count, type, MPI_SUM, group->comm), error);
}

static int mpi_all_gather(void *state, void *out, const void *in, size_t count, enum wlb_dtype dtype,
                          struct wlb_error *error)
{
	struct mpi_group *group = state;
	MPI_Datatype type;
	if (find_type(dtype, &type, error) < 0)
		return -1;
	if (count > INT_MAX)
		return too_long(count, error);
	return check(
		MPI_Allgather(in != NULL ? in : MPI_IN_PLACE, (int)count, type, out, (int)count, type, group->comm),
		error);
}

static int mpi_recv(void *state, void *buffer, size_t bytes, int from, struct wlb_error *error)
{
	struct mpi_group *group = state;
	char *at = buffer;
	for (size_t n; bytes > 0; bytes -= n, at += n) {
		n = piece(bytes);
		if (check(MPI_Recv(at, (int)n, MPI_BYTE, from, TAG, group->comm, MPI_STATUS_IGNORE), error) < 0)
			return -1;
	}
	return 0;
}

static void *mpi_handle_new(struct wlb_error *error)
{
	struct mpi_started *started = calloc(1, sizeof(*started));
	if (started == NULL)
		wlb_fail(error, "out of memory");
	return started;
}

static void mpi_handle_free(void *handle)
{
	struct mpi_started *started = handle;
	if (started != NULL)
		free(started->pieces);
	free(started);
}

static int reserve_pieces(struct mpi_started *started, size_t count, struct wlb_error *error)
{
	started->count = 0;
	if (wlb_grow((void **)&started->pieces, &started->capacity, count, sizeof(*started->pieces)) < 0)
		return wlb_fail(error, "out of memory for %zu requests of MPI", count);
	return 0;
}

static int mpi_send_start(void *state, void *handle, const void *buffer, size_t bytes, int to, struct wlb_error *error)
{
	struct mpi_group *group = state;
	struct mpi_started *started = handle;
	if (reserve_pieces(started, (bytes + PIECE_ELEMENTS - 1) / PIECE_ELEMENTS, error) < 0)
		return -1;
	const char *at = buffer;
	for (size_t n; bytes > 0; bytes -= n, at += n) {
		n = piece(bytes);
		if (check(MPI_Isend(at, (int)n, MPI_BYTE, to, TAG, group->comm, &started->pieces[started->count]),
		          error) < 0)
			return -1;
		started->count++;
	}
	return 0;
}

static int mpi_reduce_scatter_start(void *state, void *handle, void *out, const void *in, size_t count,
                                    enum wlb_dtype dtype, struct wlb_error *error)
{
	struct mpi_group *group = state;
	struct mpi_started *started = handle;
	MPI_Datatype type;
	if (find_type(dtype, &type, error) < 0)
		return -1;
	if (count > INT_MAX)
		return too_long(count, error);
	if (reserve_pieces(started, 1, error) < 0 ||
	    check(MPI_Ireduce_scatter_block(in, out, (int)count, type, MPI_SUM, group->comm, started->pieces), error) <
	            0)
		return -1;
	started->count = 1;
	return 0;
}

static int mpi_test(void *handle, struct wlb_error *error)
{
	struct mpi_started *started = handle;
	int done = 1;
	for (size_t i = 0; i < started->count; i++) {
		int piece_done = 0;
		if (check(MPI_Test(&started->pieces[i], &piece_done, MPI_STATUS_IGNORE), error) < 0)
			return -1;
		done &= piece_done;
	}
	return done;
}

static int mpi_wait(void *handle, struct wlb_error *error)
{
	struct mpi_started *started = handle;
	for (size_t i = 0; i < started->count; i++)
		if (check(MPI_Wait(&started->pieces[i], MPI_STATUS_IGNORE), error) < 0)
			return -1;
	return 0;
}

const struct wlb_transport wlb_transport_mpi = {
	.split = mpi_split,
	.close = mpi_close,
	.all_reduce = mpi_all_reduce,
	.reduce_scatter = mpi_reduce_scatter,
	.all_gather = mpi_all_gather,
	.recv = mpi_recv,
	.handle_new = mpi_handle_new,
	.handle_free = mpi_handle_free,
	.send_start = mpi_send_start,
	.reduce_scatter_start = mpi_reduce_scatter_start,
	.test = mpi_test,
	.wait = mpi_wait,
};
