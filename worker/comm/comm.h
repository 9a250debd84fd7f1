/*
 * How ranks talk. One header; transports behind it: MPI, and NCCL.
 *
 * Buffers are device memory of the device the communicator was opened with; for a transport that cannot
 * reach device memory they are staged. Every call is collective over the communicator, in the same order on
 * every rank, and blocks until the local buffer may be used again.
 * Every call is recorded in the trace (comm_trace.h): who entered, when, how long, how many bytes.
 * A rank that is alone in a communicator has nobody to talk to: there a call is a copy or nothing, and is not
 * recorded.
 * On failure -1 and a message naming communicator, collective and cause; the communicator is then
 * unusable and the process should end.
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
/* Collective over `parent`: ranks with equal color form a group, ordered by key. `name` ("dp", "tp", ...)
 * is what traces and messages call it. */
struct wlb_comm *wlb_comm_split(struct wlb_comm *parent, int color, int key, const char *name, struct wlb_error *error);
/* Closing the world ends MPI; groups split from it must be closed before. NULL allowed. */
void wlb_comm_close(struct wlb_comm *comm);

int wlb_comm_rank(const struct wlb_comm *comm);
int wlb_comm_size(const struct wlb_comm *comm);
const char *wlb_comm_name(const struct wlb_comm *comm);

/* buffer[count] of the device's real type, reduced in place. */
int wlb_comm_all_reduce(struct wlb_comm *comm, void *buffer, size_t count, enum wlb_reduce op, struct wlb_error *error);
/* Host doubles and int64s: small scalars (loss, norms, agreements). */
int wlb_comm_all_reduce_double(struct wlb_comm *comm, double *buffer_host, size_t count, enum wlb_reduce op,
                               struct wlb_error *error);
/* out[count] = this rank's part of the sum of in[count * size], which out does not overlap; where size is 1, out
 * may be in. */
int wlb_comm_reduce_scatter(struct wlb_comm *comm, void *out, const void *in, size_t count, struct wlb_error *error);
/* out[count * size] = every rank's in[count], in rank order. In place where `in` is out + rank * count. */
int wlb_comm_all_gather(struct wlb_comm *comm, void *out, const void *in, size_t count, struct wlb_error *error);
/* What rank `from` sent with wlb_comm_send_start, in the order of its sends to this rank. */
int wlb_comm_recv(struct wlb_comm *comm, void *buffer, size_t count, int from, struct wlb_error *error);

/* ---- what goes on beside computation ----
 * A call that was started goes on while the caller computes; its buffers belong to it until it has been waited for.
 * Started calls of one communicator keep their order among themselves and with blocking ones; they may be waited for in
 * any order. wlb_comm_close gives up what has not been waited for: only a process that ends may do that. */
struct wlb_comm_request; /* owned by the communicator */
/* NULL on failure. */
struct wlb_comm_request *wlb_comm_send_start(struct wlb_comm *comm, const void *buffer, size_t count, int to,
                                             struct wlb_error *error);
struct wlb_comm_request *wlb_comm_reduce_scatter_start(struct wlb_comm *comm, void *out, const void *in, size_t count,
                                                       struct wlb_error *error);
/* Ends the request, which is then gone, also on failure. NULL is done already. What was started is bounded while it is
 * waited for, as any other call (worker/record/watchdog.h). */
int wlb_comm_wait(struct wlb_comm_request *request, struct wlb_error *error);
/* Lets what was started move on: for transports that only move inside a call (MPI without a thread of its own).
 * Cheap where nothing is under way; no error is lost, the wait tells it. */
void wlb_comm_progress(struct wlb_comm *comm);

/* Seconds that the caller was held up inside calls of this communicator so far; progress counts too. */
double wlb_comm_seconds(const struct wlb_comm *comm);
/* Of them, those in wlb_comm_recv: waiting for what another rank sends. */
double wlb_comm_receive_s(const struct wlb_comm *comm);
/* Of wlb_comm_seconds, what the device's clock of work (wlb_ops.busy_s) took for the device's own: to be taken off
 * where it is read before and after. MPI waits by asking again and again, which a CPU device cannot tell from work. */
double wlb_comm_busy_s(const struct wlb_comm *comm);

#endif
