/* The functions of a transport that implements comm.h. Private to worker/comm. */
#ifndef WORKER_COMM_TRANSPORT_H
#define WORKER_COMM_TRANSPORT_H

#include <stddef.h>

#include "kernels/ops.h"
#include "worker/comm/comm.h"

/* For two ranks or more: comm.h needs no transport for a communicator of one rank. Buffers are host memory. Every
 * function returns 0, or -1 with only the cause in `error`: comm.h adds the names of the communicator and of the
 * collective. `state` is the group's. */
struct wlb_transport {
	/* Returns the state of the caller's new group, and the rank and size in it; NULL on failure. */
	void *(*split)(void *state, int color, int key, int *rank, int *size, struct wlb_error *error);
	void (*close)(void *state, int is_world);
	int (*all_reduce)(void *state, void *buffer, size_t count, enum wlb_dtype dtype, enum wlb_reduce op,
	                  struct wlb_error *error);
	int (*reduce_scatter)(void *state, void *out, const void *in, size_t count, enum wlb_dtype dtype,
	                      struct wlb_error *error);
	/* in NULL: this rank's part is already in `out`, at its position. */
	int (*all_gather)(void *state, void *out, const void *in, size_t count, enum wlb_dtype dtype,
	                  struct wlb_error *error);
	int (*recv)(void *state, void *buffer, size_t bytes, int from, struct wlb_error *error);

	/* Started calls. A handle is used for one call after another: its memory is kept for the next. */
	void *(*handle_new)(struct wlb_error *error); /* NULL on failure */
	void (*handle_free)(void *handle);            /* NULL allowed */
	int (*send_start)(void *state, void *handle, const void *buffer, size_t bytes, int to, struct wlb_error *error);
	int (*reduce_scatter_start)(void *state, void *handle, void *out, const void *in, size_t count,
	                            enum wlb_dtype dtype, struct wlb_error *error);
	int (*test)(void *handle, struct wlb_error *error); /* 1: done, 0: not yet */
	int (*wait)(void *handle, struct wlb_error *error);
};

/* MPI_COMM_WORLD; initialises MPI and checks that it agrees on rank and size. */
extern const struct wlb_transport wlb_transport_mpi;
void *wlb_transport_mpi_open(int rank, int size, struct wlb_error *error);

#endif
