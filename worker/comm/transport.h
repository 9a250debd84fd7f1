/* What a transport behind comm.h does. Private to worker/comm. */
#ifndef WLB_TRANSPORT_H
#define WLB_TRANSPORT_H

#include <stddef.h>

#include "kernels/ops.h"
#include "worker/comm/comm.h"

/* Buffers are host memory. Every function returns 0, or -1 with the cause alone in `error`: the front adds
 * which collective of which communicator it was. `state` is the group's. */
struct wlb_transport {
	/* The state of the caller's new group, with its rank and size there; NULL on failure. */
	void *(*split)(void *state, int color, int key, int *rank, int *size, struct wlb_error *error);
	void (*close)(void *state, int is_world);
	int (*all_reduce)(void *state, void *buffer, size_t count, enum wlb_dtype dtype, enum wlb_reduce op,
	                  struct wlb_error *error);
	int (*reduce_scatter)(void *state, void *out, const void *in, size_t count, enum wlb_dtype dtype,
	                      struct wlb_error *error);
	int (*all_gather)(void *state, void *out, const void *in, size_t bytes, struct wlb_error *error);
	int (*broadcast)(void *state, void *buffer, size_t bytes, int root, struct wlb_error *error);
	int (*send)(void *state, const void *buffer, size_t bytes, int to, struct wlb_error *error);
	int (*recv)(void *state, void *buffer, size_t bytes, int from, struct wlb_error *error);
	int (*barrier)(void *state, struct wlb_error *error);
};

/* A world of one rank: every collective is a copy or nothing. */
extern const struct wlb_transport wlb_transport_alone;

/* MPI_COMM_WORLD; initialises MPI and checks that it agrees on rank and size. */
extern const struct wlb_transport wlb_transport_mpi;
void *wlb_transport_mpi_open(int rank, int size, struct wlb_error *error);

#endif
