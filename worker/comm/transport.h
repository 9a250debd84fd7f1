/* What a transport behind comm.h does. Private to worker/comm. */
#ifndef WORKER_COMM_TRANSPORT_H
#define WORKER_COMM_TRANSPORT_H

#include <stddef.h>

#include "kernels/ops.h"
#include "worker/comm/comm.h"

/* Between two ranks or more: the front needs no transport for a rank that is alone. Buffers are host memory. Every
 * function returns 0, or -1 with the cause alone in `error`: the front adds which collective of which communicator it
 * was. `state` is the group's. */
struct wlb_transport {
	/* The state of the caller's new group, with its rank and size there; NULL on failure. */
	void *(*split)(void *state, int color, int key, int *rank, int *size, struct wlb_error *error);
	void (*close)(void *state, int is_world);
	int (*all_reduce)(void *state, void *buffer, size_t count, enum wlb_dtype dtype, enum wlb_reduce op,
	                  struct wlb_error *error);
	int (*reduce_scatter)(void *state, void *out, const void *in, size_t count, enum wlb_dtype dtype,
	                      struct wlb_error *error);
	/* in NULL: this rank's part is in its place in `out`. */
	int (*all_gather)(void *state, void *out, const void *in, size_t count, enum wlb_dtype dtype,
	                  struct wlb_error *error);
	int (*recv)(void *state, void *buffer, size_t bytes, int from, struct wlb_error *error);

	/* Started calls. A handle serves one call after the other: what it holds is kept for the next. */
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
