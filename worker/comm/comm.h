/*
 * Communication between ranks. The transports MPI and NCCL implement it.
 *
 * Buffers are memory of the device that the communicator was opened with; for a transport that cannot access device
 * memory they are staged in host memory. Every call is collective over the communicator, in the same order on every
 * rank, and blocks until the local buffer may be used again. Every call is recorded in the trace (comm_trace.h): its
 * kind, start, duration and bytes. In a communicator of one rank a call copies its buffer or does nothing, and is not
 * recorded. On failure a call returns -1 with a message that names the communicator, the collective and the cause; the
 * communicator is then unusable and the process should end.
 */
#ifndef WORKER_COMM_COMM_H
#define WORKER_COMM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"
#include "libwlb/wlb.h"

struct wlb_comm;

enum wlb_reduce { WLB_SUM, WLB_MAX };

/* The communicator of all ranks. MPI is initialised here where size > 1. */
struct wlb_comm *wlb_comm_open_world(struct wlb_device *device, int rank, int size, struct wlb_error *error);
/* Collective over `parent`: ranks with equal color form a group, ordered by key. `name` ("dp", "tp", ...) is its name
 * in traces and messages. */
struct wlb_comm *wlb_comm_split(struct wlb_comm *parent, int color, int key, const char *name, struct wlb_error *error);
/* Closing the world ends MPI; groups split from it must be closed before. NULL allowed. */
void wlb_comm_close(struct wlb_comm *comm);

int wlb_comm_rank(const struct wlb_comm *comm);
int wlb_comm_size(const struct wlb_comm *comm);
const char *wlb_comm_name(const struct wlb_comm *comm);

/* buffer[count] of the device's real type, reduced in place. */
int wlb_comm_all_reduce(struct wlb_comm *comm, void *buffer, size_t count, enum wlb_reduce op, struct wlb_error *error);
/* Host doubles and int64s: for small arrays of scalars (loss, norms, agreements). */
int wlb_comm_all_reduce_double(struct wlb_comm *comm, double *buffer_host, size_t count, enum wlb_reduce op,
                               struct wlb_error *error);
/* out[count] = this rank's part of the sum of in[count * size], which must not overlap out; where size is 1, out may
 * equal in. */
int wlb_comm_reduce_scatter(struct wlb_comm *comm, void *out, const void *in, size_t count, struct wlb_error *error);
/* out[count * size] = every rank's in[count], in rank order. `in` may be out + rank * count; it must not overlap `out`
 * otherwise. */
int wlb_comm_all_gather(struct wlb_comm *comm, void *out, const void *in, size_t count, struct wlb_error *error);
/* Receives what rank `from` sent with wlb_comm_send_start, in the order of its sends to this rank. */
int wlb_comm_recv(struct wlb_comm *comm, void *buffer, size_t count, int from, struct wlb_error *error);

/* ---- calls that continue beside computation ----
 * A started call continues while the caller computes; the caller must not use its buffers until wlb_comm_wait has
 * returned. Started calls of one communicator keep their order among themselves and with blocking calls; they may be
 * waited for in any order. wlb_comm_close drops calls that have not been waited for: only a process that ends may do
 * that. */
struct wlb_comm_request; /* owned by the communicator */
/* NULL on failure. */
struct wlb_comm_request *wlb_comm_send_start(struct wlb_comm *comm, const void *buffer, size_t count, int to,
                                             struct wlb_error *error);
struct wlb_comm_request *wlb_comm_reduce_scatter_start(struct wlb_comm *comm, void *out, const void *in, size_t count,
                                                       struct wlb_error *error);
/* Waits for the call and ends the request, also on failure: it must not be used again. Returns 0 at once for NULL. The
 * wait is bounded as any other call (worker/record/watchdog.h). */
int wlb_comm_wait(struct wlb_comm_request *request, struct wlb_error *error);
/* Advances started calls, for transports that advance only inside a call (MPI without a progress thread). Cheap where
 * no call is in progress. wlb_comm_wait returns the errors of calls that fail here. */
void wlb_comm_progress(struct wlb_comm *comm);

/* Returns the seconds that the caller has been blocked inside calls of this communicator so far, including
 * wlb_comm_progress. */
double wlb_comm_blocked_s(const struct wlb_comm *comm);
/* Returns the part of wlb_comm_blocked_s spent in wlb_comm_recv, waiting for another rank to send. */
double wlb_comm_receive_s(const struct wlb_comm *comm);
/* Returns the part of wlb_comm_blocked_s that the device's clock (wlb_ops.busy_s) counted as computation; the caller
 * subtracts it from a difference of that clock. MPI waits by polling, which a CPU device cannot distinguish from
 * computation. */
double wlb_comm_busy_s(const struct wlb_comm *comm);

#endif
