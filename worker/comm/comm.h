/*
 * Communication between ranks, of two kinds:
 *  - Data calls: on buffers of the device that the communicator was opened with, of an element type that the call
 * names. A transport carries them, over MPI or NCCL. A call is started, and it is awaited before its buffers are used
 * again. Started, it waits for the work that is on the device's compute queue by then, and overlaps with what
 * follows. Awaited, it makes the compute queue wait for its end; the host itself waits only where the transport is MPI.
 * Each communicator has a queue of its own on the device, of high priority.
 *  - Host calls: on small arrays of doubles in host memory, over MPI. They block the host.
 *
 * Every call is collective over the communicator, in the same order on every rank (a send and a receive: in the same
 * order on the two ranks). Every call is recorded in the trace (comm_trace.h): its kind, start, duration and bytes. In
 * a communicator of one rank a call copies its buffer or does nothing, and is not recorded. On failure a call returns
 * -1 or NULL with a message that names the communicator, the call and the cause; the communicator is then unusable and
 * the process should end.
 */
#ifndef WORKER_COMM_COMM_H
#define WORKER_COMM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"
#include "libwlb/wlb.h"

struct wlb_comm;

enum wlb_reduce { WLB_SUM, WLB_MAX };

/* What the launcher of the ranks carries between them before a transport does; the launcher bounds the wait. */
struct wlb_comm_launcher {
	void *state;
	/* Collective: every rank's `blob` becomes rank 0's. Each call in a run has its own key. 0, or -1. */
	int (*share)(void *state, const char *key, void *blob, size_t bytes, struct wlb_error *error);
};

/* The communicator of all ranks. MPI is initialised here where size > 1. */
struct wlb_comm *wlb_comm_open_world(struct wlb_device *device, int rank, int size, struct wlb_error *error);
/* auto: NCCL where every rank can use it, else MPI. */
enum wlb_transport_choice { WLB_TRANSPORT_AUTO, WLB_TRANSPORT_NCCL, WLB_TRANSPORT_MPI };
/* Collective, before the world's first data call and split; without it the transport of data calls is MPI. NCCL needs a
 * GPU for each rank alone; each step of connecting by it takes at most limit_s. *why says, on all ranks, why MPI was
 * chosen where the device has memory of its own, else it is "". Returns -1 where NCCL is asked for and cannot be used.
 */
int wlb_comm_choose_transport(struct wlb_comm *world, enum wlb_transport_choice choice,
                              const struct wlb_comm_launcher *launcher, double limit_s, char *why, size_t size,
                              struct wlb_error *error);
/* A group to be split off: the ranks with equal color, ordered by key, then by rank. */
struct wlb_comm_split {
	struct wlb_comm **comm; /* set to the new communicator, or NULL; unused where the color is negative */
	int color, key;         /* negative color: this rank is in no group of this split */
	char name[32];          /* ("dp", "tp", ...) in traces and messages; the first 15 bytes */
};
/* Collective over `parent`, with the same count on every rank: splits off all groups in one exchange of all ranks,
 * however many there are. On failure some may have been made; the caller closes them. */
int wlb_comm_split_all(struct wlb_comm *parent, const struct wlb_comm_split *splits, int count,
                       struct wlb_error *error);
/* One of them. NULL on failure. */
struct wlb_comm *wlb_comm_split(struct wlb_comm *parent, int color, int key, const char *name, struct wlb_error *error);
/* Collective over each of the communicators: connects the ranks of those that are not connected yet. Those of MPI are,
 * from the split on. Over NCCL all are connected side by side, in whatever order the ranks name them, within three
 * times the limit of wlb_comm_choose_transport; one that is not connected before its first data call is then, and the
 * host waits for its other ranks. NULL is skipped. */
int wlb_comm_connect(struct wlb_comm *const *comms, int count, struct wlb_error *error);
/* Closing the world ends MPI; groups split from it must be closed before. NULL allowed. */
void wlb_comm_close(struct wlb_comm *comm);

int wlb_comm_rank(const struct wlb_comm *comm);
int wlb_comm_size(const struct wlb_comm *comm);
const char *wlb_comm_name(const struct wlb_comm *comm);

/* A host call: buffer_host[count], reduced in place; for loss, norms and agreements. */
int wlb_comm_all_reduce_double(struct wlb_comm *comm, double *buffer_host, size_t count, enum wlb_reduce op,
                               struct wlb_error *error);

/* ---- data calls, started ----
 * NULL on failure. Until the request is awaited the caller must not use the buffers. Calls of one communicator keep
 * their order; they may be awaited in any order. wlb_comm_close drops calls that were not awaited: only a process that
 * ends may do that. A request is memory of the communicator, and is used again for later calls. */
struct wlb_comm_request;
/* Makes the memory of `count` requests that are in flight at once, so that starting so many allocates no other. To be
 * called before the first call. */
int wlb_comm_reserve(struct wlb_comm *comm, int count, struct wlb_error *error);
/* buffer[count], reduced in place. */
struct wlb_comm_request *wlb_comm_all_reduce_start(struct wlb_comm *comm, void *buffer, size_t count,
                                                   enum wlb_dtype dtype, enum wlb_reduce op, struct wlb_error *error);
/* out[count] = this rank's part of the sum of in[count * size], which must not overlap out; where size is 1, out may
 * equal in. */
struct wlb_comm_request *wlb_comm_reduce_scatter_start(struct wlb_comm *comm, void *out, const void *in, size_t count,
                                                       enum wlb_dtype dtype, struct wlb_error *error);
/* out[count * size] = every rank's in[count], in rank order. `in` may be out + rank * count; it must not overlap `out`
 * otherwise. */
struct wlb_comm_request *wlb_comm_all_gather_start(struct wlb_comm *comm, void *out, const void *in, size_t count,
                                                   enum wlb_dtype dtype, struct wlb_error *error);
/* buffer[count] to the rank `to`, which receives the same count and type. */
struct wlb_comm_request *wlb_comm_send_start(struct wlb_comm *comm, const void *buffer, size_t count,
                                             enum wlb_dtype dtype, int to, struct wlb_error *error);
/* Receives what rank `from` sent, in the order of its sends to this rank. */
struct wlb_comm_request *wlb_comm_recv_start(struct wlb_comm *comm, void *buffer, size_t count, enum wlb_dtype dtype,
                                             int from, struct wlb_error *error);
/* Returns 1 where awaiting a data call makes the host wait (MPI), 0 where only the compute queue waits (NCCL). */
int wlb_comm_blocks_host(const struct wlb_comm *comm);
/* Returns 1 where the call has ended, so that awaiting it would make neither the host nor the compute queue wait; also
 * where it has failed, and for NULL. */
int wlb_comm_has_ended(struct wlb_comm_request *request);
/* Awaits the call and ends the request, also on failure: it must not be used again. Operations that are queued on the
 * compute queue from now on find the result. Returns 0 at once for NULL. Where the host waits, that is bounded as any
 * other call (worker/record/watchdog.h). */
int wlb_comm_wait(struct wlb_comm_request *request, struct wlb_error *error);
/* Advances started calls, for transports that advance only inside a call (MPI without a progress thread). Cheap where
 * no call is in progress. wlb_comm_wait returns the errors of calls that fail here. */
void wlb_comm_progress(struct wlb_comm *comm);

/* ---- data calls that overlap with what follows where that is no slower ----
 * Over NCCL they are started; over MPI they have ended when they return: MPI's started collectives use slower
 * algorithms than its blocking ones, and advance only inside calls. *request is to be awaited; it is NULL where the
 * call has ended, and on failure. Return -1 on failure. */
int wlb_comm_reduce_scatter_overlapped(struct wlb_comm *comm, void *out, const void *in, size_t count,
                                       enum wlb_dtype dtype, struct wlb_comm_request **request,
                                       struct wlb_error *error);
int wlb_comm_all_gather_overlapped(struct wlb_comm *comm, void *out, const void *in, size_t count, enum wlb_dtype dtype,
                                   struct wlb_comm_request **request, struct wlb_error *error);

/* wlb_comm_all_gather_overlapped that waits for the work on another queue of the device in place of the compute
 * queue's. */
int wlb_comm_all_gather_behind(struct wlb_comm *comm, struct wlb_queue *behind, void *out, const void *in, size_t count,
                               enum wlb_dtype dtype, struct wlb_comm_request **request, struct wlb_error *error);

/* ---- data calls, started and awaited at once ---- */
int wlb_comm_all_reduce(struct wlb_comm *comm, void *buffer, size_t count, enum wlb_dtype dtype, enum wlb_reduce op,
                        struct wlb_error *error);
int wlb_comm_reduce_scatter(struct wlb_comm *comm, void *out, const void *in, size_t count, enum wlb_dtype dtype,
                            struct wlb_error *error);
int wlb_comm_all_gather(struct wlb_comm *comm, void *out, const void *in, size_t count, enum wlb_dtype dtype,
                        struct wlb_error *error);
int wlb_comm_recv(struct wlb_comm *comm, void *buffer, size_t count, enum wlb_dtype dtype, int from,
                  struct wlb_error *error);

/* Returns the seconds that the caller has been blocked inside calls of this communicator so far, including
 * wlb_comm_progress. Where the host does not wait for calls, the compute queue's waits for them are in it, as far as
 * they have ended: those of a step are known when the device has ended it. */
double wlb_comm_blocked_s(const struct wlb_comm *comm);
/* Returns the part of wlb_comm_blocked_s spent in receives, waiting for another rank to send. */
double wlb_comm_receive_s(const struct wlb_comm *comm);
/* Returns the part of wlb_comm_blocked_s that the device's clock (wlb_ops.busy_s) counted as computation; the caller
 * subtracts it from a difference of that clock. MPI waits by polling, which a CPU device cannot distinguish from
 * computation. */
double wlb_comm_busy_s(const struct wlb_comm *comm);

/* What was called so far. */
struct wlb_comm_use {
	uint64_t calls, bytes; /* bytes: of the local buffers */
	double host_blocked_s; /* the part of wlb_comm_blocked_s in which the host waited */
};
struct wlb_comm_use wlb_comm_use(const struct wlb_comm *comm);
/* Returns the communicator's number in the trace; -1 where it is not traced. */
int wlb_comm_traced_group(const struct wlb_comm *comm);

/* The waits by part of the caller's work. What the host queues now the compute queue waits for later, so a part is
 * named when calls are made, and its waits are read when the device has ended it. */
enum { WLB_COMM_PARTS = 7 };
/* The waits for calls from now on are those of `part`, below WLB_COMM_PARTS; 0 at first. */
void wlb_comm_set_part(struct wlb_comm *comm, int part);
struct wlb_comm_waits {
	double all_s;      /* of the compute queue, or of the host where wlb_comm_blocks_host */
	double receives_s; /* the part of it in receives */
};
/* Returns the waits of a part, as far as they have ended, and forgets them. */
struct wlb_comm_waits wlb_comm_take_waits(struct wlb_comm *comm, int part);

#endif
