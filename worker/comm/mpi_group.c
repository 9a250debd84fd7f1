#include "worker/comm/mpi_group.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>

#include "worker/comm/mpi_bfloat16.h"
#include "worker/comm/mpi_components.h"
#include "worker/comm/mpi_error.h"

static struct wlb_mpi_group *group_new(MPI_Comm comm, struct wlb_error *error)
{
	struct wlb_mpi_group *group = calloc(1, sizeof(*group));
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
	enum { KEPT_MAX = 32 << 20 }; /* the largest M_MMAP_THRESHOLD that malloc takes */
	mallopt(M_MMAP_THRESHOLD, KEPT_MAX);
	mallopt(M_TRIM_THRESHOLD, 4 * KEPT_MAX);
}

struct wlb_mpi_group *wlb_mpi_open_world(int rank, int size, struct wlb_error *error)
{
	/* Where a host runs more ranks than it has cores, waiting ranks must yield the core to working ones; a setting
	 * of the user is kept. */
	setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
	keep_freed_memory();
	int provided = MPI_THREAD_SINGLE;
	if (wlb_mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), error) < 0)
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
	return wlb_mpi_check(wlb_mpi_bfloat16_open(), error) == 0 ? group_new(MPI_COMM_WORLD, error) : NULL;
}

struct wlb_mpi_group *wlb_mpi_split(struct wlb_mpi_group *parent, int color, int key, int *rank, int *size,
                                    struct wlb_error *error)
{
	MPI_Comm comm = MPI_COMM_NULL;
	if (wlb_mpi_check(MPI_Comm_split(parent->comm, color, key, &comm), error) < 0)
		return NULL;
	MPI_Comm_rank(comm, rank);
	MPI_Comm_size(comm, size);
	return group_new(comm, error);
}

void wlb_mpi_close(struct wlb_mpi_group *group, int is_world)
{
	if (is_world) {
		wlb_mpi_bfloat16_close();
		MPI_Finalize();
	} else {
		MPI_Comm_free(&group->comm);
	}
	free(group);
}

int wlb_mpi_all_reduce_double(struct wlb_mpi_group *group, double *buffer_host, size_t count, enum wlb_reduce op,
                              struct wlb_error *error)
{
	if (count > INT_MAX)
		return wlb_fail(error, "%zu numbers of the host: MPI takes at most %d", count, INT_MAX);
	return wlb_mpi_check(MPI_Allreduce(MPI_IN_PLACE, buffer_host, (int)count, MPI_DOUBLE,
	                                   op == WLB_MAX ? MPI_MAX : MPI_SUM, group->comm),
	                     error);
}
