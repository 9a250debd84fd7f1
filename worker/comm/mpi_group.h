/* Groups of MPI: all ranks, and the groups split from them. Private to worker/comm. */
#ifndef WORKER_COMM_MPI_GROUP_H
#define WORKER_COMM_MPI_GROUP_H

#include <mpi.h>
#include <stddef.h>

#include "libwlb/wlb.h"
#include "worker/comm/comm.h"

struct wlb_mpi_group {
	MPI_Comm comm; /* MPI_COMM_NULL until wlb_mpi_connect; it needs none to exchange ids */
	int rank, size;
	int splits; /* groups split from it so far, the same number on all its ranks */
	/* Of a group that was split off: */
	MPI_Comm parent;
	int *ranks; /* [size] in the parent, in the order of the group */
	int tag;    /* of its messages in the parent, which no other group split off there has */
	/* Of the transport that was opened for the group; the caller's. */
	struct wlb_device *device;
	struct wlb_queue *queue;
};

/* Initialises MPI and checks that it agrees on rank and size. NULL on failure. */
struct wlb_mpi_group *wlb_mpi_open_world(int rank, int size, struct wlb_error *error);
/* Collective over the world: a group of the same ranks, whose messages are apart. NULL on failure. */
struct wlb_mpi_group *wlb_mpi_duplicate(const struct wlb_mpi_group *world, struct wlb_error *error);

struct wlb_mpi_color {
	int color, key;
};
/* Collective over `parent`, with the same count on every rank, in one collective of MPI: groups[i] = the caller's new
 * group of the ranks that have this rank's color in their colors[i], ordered by key, then by rank. It is NULL where the
 * color is negative and where no other rank has it. On failure all are NULL. The parent must outlive the groups. */
int wlb_mpi_split(struct wlb_mpi_group *parent, const struct wlb_mpi_color *colors, int count,
                  struct wlb_mpi_group **groups, struct wlb_error *error);
/* Collective over the group: makes its communicator of MPI where it has none yet. */
int wlb_mpi_connect(struct wlb_mpi_group *group, struct wlb_error *error);
void wlb_mpi_close(struct wlb_mpi_group *group, int is_world); /* closing the world ends MPI; NULL allowed */

/* Collective over the group, which it connects; buffers of the host. */
int wlb_mpi_all_reduce_double(struct wlb_mpi_group *group, double *buffer_host, size_t count, enum wlb_reduce op,
                              struct wlb_error *error);

#endif
