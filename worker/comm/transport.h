/* The functions of a transport that carries the data calls of comm.h. Private to worker/comm. */
#ifndef WORKER_COMM_TRANSPORT_H
#define WORKER_COMM_TRANSPORT_H

#include <stddef.h>

#include "kernels/ops.h"
#include "worker/comm/comm.h"
#include "worker/comm/comm_trace.h"

struct wlb_mpi_group;

enum { WLB_GROUP_ID_BYTES = 128 };

/* The ranks of a communicator, for its transport; the caller's. */
struct wlb_transport_group {
	struct wlb_mpi_group *mpi;
	int rank, size;
	/* Where the transport has make_id: that of the group, the same on all its ranks. */
	int has_id;
	char id[WLB_GROUP_ID_BYTES];
};

/* What a data call requests of the transport, with the arguments that comm.h describes. */
struct wlb_transport_request {
	enum wlb_comm_kind kind;
	void *out;      /* device; NULL for a send */
	const void *in; /* device; NULL for a receive; `out` for an all_reduce */
	size_t count;   /* of a rank's part, in elements */
	enum wlb_dtype dtype;
	enum wlb_reduce op;       /* of an all_reduce */
	int peer;                 /* of a send or a receive */
	int blocking;             /* 1: finish() follows at once, so that all of the call may be in it */
	struct wlb_queue *behind; /* whose work the call waits for; NULL: the compute queue's */
};

/* For two ranks or more: comm.h needs no transport for a communicator of one rank. Functions that return int return 0,
 * or -1 with only the cause in `error`: comm.h adds the names of the communicator and of the call. */
struct wlb_transport {
	/* 1: start() queues the call on the group's queue, and it has ended when the queue reaches an event recorded
	 * behind it. 0: it has ended when finish() has returned and the queue reaches an event recorded behind that. */
	int on_queue;
	/* Makes the id of a group, on the group's first rank. The other ranks must have received the id before they
	 * connect. NULL where the transport needs none. */
	int (*make_id)(char *id, struct wlb_error *error);
	/* Makes this rank's state of a group. The group's calls use `queue`, which already waits for what a call needs
	 * when it is started. The caller owns group, device and queue, which must outlive the state. NULL on failure.
	 */
	void *(*open)(const struct wlb_transport_group *group, struct wlb_device *device, struct wlb_queue *queue,
	              double limit_s, struct wlb_error *error);
	/* Connects the ranks of groups, side by side over NCCL, which takes at most 2 limit_s; collective over each of
	 * them, before its first call. On failure *which is the place of the group that failed. */
	int (*connect)(void *const *states, int count, int *which, struct wlb_error *error);
	void (*close)(void *state);

	/* A handle is used for one call after another: its memory is kept for the next. */
	void *(*handle_new)(void *state, struct wlb_error *error); /* NULL on failure */
	void (*handle_free)(void *handle);                         /* NULL allowed */
	/* Makes the host wait until the data to send is where the transport reads it. NULL where it never does. */
	int (*prepare)(void *handle, const struct wlb_transport_request *request, struct wlb_error *error);
	int (*start)(void *handle, const struct wlb_transport_request *request, struct wlb_error *error);
	int (*test)(void *handle, struct wlb_error *error); /* 1: ended, 0: not yet; NULL where on_queue is 1 */
	/* Makes the host wait for the call; NULL where on_queue is 1. */
	int (*finish)(void *handle, const struct wlb_transport_request *request, struct wlb_error *error);
	/* Where on_queue is 1, for any thread. check: 0, or -1 where the transport has found a failure of the group.
	 * abort: ends the calls that are on the queue; the group is unusable afterwards. */
	int (*check)(void *state, struct wlb_error *error);
	void (*abort)(void *state);
};

extern const struct wlb_transport wlb_transport_mpi;
extern const struct wlb_transport wlb_transport_nccl;
/* 0, or -1 with the reason why this process cannot use NCCL. */
int wlb_nccl_usable(struct wlb_error *error);

#endif
