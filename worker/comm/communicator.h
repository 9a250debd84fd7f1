/* What a communicator is made of, for the files that implement comm.h. Private to worker/comm. */
#ifndef WORKER_COMM_COMMUNICATOR_H
#define WORKER_COMM_COMMUNICATOR_H

#include "worker/comm/comm.h"
#include "worker/comm/comm_trace.h"
#include "worker/comm/staging.h"
#include "worker/comm/transport.h"

/* Both clocks of comm.h. */
struct wlb_comm_clock {
	double now_s;
	double busy_s;
};

struct wlb_comm {
	const struct wlb_transport *transport; /* NULL where size is 1 */
	void *state;
	struct wlb_device *device;
	struct wlb_comm_trace *trace; /* the world's, shared by the groups */
	int is_world;
	int rank;
	int size;
	uint64_t seq;
	char name[16];
	struct wlb_comm_clock held_up; /* so far */
	double received_s;             /* of it, in receives */
	struct wlb_comm_clock blocked; /* when the caller was last */
	struct wlb_comm_event call;    /* in this one */
	struct wlb_staging in, out;    /* of blocking calls */
	struct wlb_comm_request *idle, *started;
};

/* The next call of this communicator; entered_s is 0 until it begins. */
struct wlb_comm_event wlb_comm_next_call(struct wlb_comm *comm, enum wlb_comm_kind kind, size_t bytes);
/* From here on the caller is held up in `call`; wlb_comm_leave ends that, gives rc back, and puts before the message of
 * a failure which call it was. */
void wlb_comm_enter(struct wlb_comm *comm, const struct wlb_comm_event *call);
int wlb_comm_leave(struct wlb_comm *comm, int rc, struct wlb_error *error);
int wlb_comm_fail(const struct wlb_comm *comm, const struct wlb_comm_event *call, struct wlb_error *error);

/* What the clocks say; and what is counted once the caller is held up no longer, which is now: the time is returned. */
struct wlb_comm_clock wlb_comm_clock(const struct wlb_comm *comm);
double wlb_comm_count(struct wlb_comm *comm, const struct wlb_comm_clock *since);

size_t wlb_comm_bytes(const struct wlb_comm *comm, size_t count);
/* What was queued on the device must be done before another rank sees a buffer. */
int wlb_comm_settle(struct wlb_comm *comm, struct wlb_error *error);
/* What a rank that is alone does instead: of a reduce_scatter or all_gather, and of a send ("send to") or recv. */
int wlb_comm_keep(struct wlb_comm *comm, void *out, const void *in, size_t count);
int wlb_comm_refuse_alone(int rank, const char *what, struct wlb_error *error);

#endif
