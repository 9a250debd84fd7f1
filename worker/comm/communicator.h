/* The members of a communicator, for the files that implement comm.h. Private to worker/comm. */
#ifndef WORKER_COMM_COMMUNICATOR_H
#define WORKER_COMM_COMMUNICATOR_H

#include "worker/comm/comm.h"
#include "worker/comm/comm_trace.h"
#include "worker/comm/transport.h"

/* The two clocks of comm.h. */
struct wlb_comm_clock {
	double now_s;
	double busy_s;
};

struct wlb_comm {
	/* NULL where size is 1: */
	struct wlb_transport_group members; /* their group of MPI is also for splits and host calls */
	const struct wlb_transport *transport;
	int is_connected;          /* its ranks, by the transport */
	void *state;               /* of the transport */
	struct wlb_queue *queue;   /* of its data calls */
	struct wlb_queued *queued; /* NULL where the transport makes the host wait */
	double limit_s;            /* longest that a step of connecting it, or a group split from it, may take */
	struct wlb_device *device;
	struct wlb_comm_trace *trace; /* the world's, shared by the groups */
	int is_world;
	int rank;
	int size;
	uint64_t seq;
	uint64_t bytes; /* of the local buffers of all calls so far */
	char name[WLB_TRACE_NAME_SIZE];
	int group;                                   /* its number in the trace, where size > 1 */
	struct wlb_comm_clock blocked_total;         /* total of all calls so far */
	double receive_s;                            /* the part of it in receives */
	int part;                                    /* that the waits are of */
	struct wlb_comm_waits waits[WLB_COMM_PARTS]; /* of the host, where the transport makes it wait */
	struct wlb_comm_clock blocked;               /* when the call in progress began to block the caller */
	struct wlb_trace_event call;                 /* the call in progress, or the last one */
	struct wlb_comm_request *idle, *started;
};

/* Returns the event of the next call of this communicator; entered_s is 0 until it begins. */
struct wlb_trace_event wlb_comm_next_call(struct wlb_comm *comm, enum wlb_comm_kind kind, size_t bytes);
/* wlb_comm_enter begins to block the caller in `call`. wlb_comm_leave ends that and returns rc; where rc is a failure
 * it puts the name of the call before the message. */
void wlb_comm_enter(struct wlb_comm *comm, const struct wlb_trace_event *call);
int wlb_comm_leave(struct wlb_comm *comm, int rc, struct wlb_error *error);
int wlb_comm_fail(const struct wlb_comm *comm, const struct wlb_trace_event *call, struct wlb_error *error);

/* wlb_comm_clock returns the clocks. wlb_comm_add_blocked adds the time from `since` until now to blocked_total, and to
 * receive_s where it was in a receive; it returns the time that it took for now. */
struct wlb_comm_clock wlb_comm_clock(const struct wlb_comm *comm);
double wlb_comm_add_blocked(struct wlb_comm *comm, const struct wlb_comm_clock *since, int in_receive);

#endif
