/* Groups of MPI: all ranks, and the groups split from them. Private to worker/comm. */
#ifndef WORKER_COMM_MPI_GROUP_H
#define WORKER_COMM_MPI_GROUP_H

#include <mpi.h>
#include <stddef.h>

#include "libwlb/wlb.h"
#include "worker/comm/comm.h"

struct wlb_mpi_group {
	MPI_Comm comm;
	/* of the transport that was opened for the group; the caller's */
	struct wlb_device *device;
	struct wlb_queue *queue;
};

/* Initialises MPI and checks that it agrees on rank and size. NULL on failure. */
struct wlb_mpi_group *wlb_mpi_open_world(int rank, int size, struct wlb_error *error);
/* Collective over `parent`. Returns the caller's new group, and its rank and size there; NULL on failure. */
struct wlb_mpi_group *wlb_mpi_split(struct wlb_mpi_group *parent, int color, int key, int *rank, int *size,
                                    struct wlb_error *error);
void wlb_mpi_close(struct wlb_mpi_group *group, int is_world); /* closing the world ends MPI */

/* Collective over the group; buffers of the host. */
int wlb_mpi_all_reduce_double(struct wlb_mpi_group *group, double *buffer_host, size_t count, enum wlb_reduce op,
                              struct wlb_error *error);

#endif
