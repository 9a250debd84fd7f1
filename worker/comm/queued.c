#include "worker/comm/queued.h"

#include <stdlib.h>

#include "common/seconds.h"

enum { MOST = 64 };

/* A call, and an event behind it on the queue. */
struct mark {
	struct wlb_comm_event call;
	struct wlb_event *ended;
};

/* A wait of the compute queue, between two events there. */
struct wait {
	struct wlb_event *from, *to;
	enum wlb_comm_kind kind;
};

struct wlb_queued {
	struct wlb_comm_source source; /* first: the trace gives it back */
	struct wlb_comm_trace *trace;
	struct wlb_device *device;
	struct wlb_queue *queue;
	const struct wlb_transport *transport;
	void *state;
	/* Rings: number i is at i % MOST. The marks are under the lock of the trace. */
	struct mark marks[MOST];
	uint64_t marked, ended;
	struct wait waits[MOST];
	uint64_t awaited, measured;
	struct wlb_queued_waits total;
};

static int next(struct wlb_comm_source *source, struct wlb_comm_event *event)
{
	struct wlb_queued *q = (struct wlb_queued *)source;
	if (q->ended == q->marked)
		return 0;
	struct mark *oldest = &q->marks[q->ended % MOST];
	*event = oldest->call;
	if (!q->device->ops->event_done(q->device, oldest->ended))
		return 2;
	event->left_s = wlb_now_s();
	q->ended++;
	return 1;
}

static int check(struct wlb_comm_source *source, struct wlb_error *error)
{
	struct wlb_queued *q = (struct wlb_queued *)source;
	return q->transport->check(q->state, error);
}

static void abort_calls(struct wlb_comm_source *source)
{
	struct wlb_queued *q = (struct wlb_queued *)source;
	q->transport->abort(q->state);
}

static int make_events(struct wlb_queued *q, struct wlb_error *error)
{
	const struct wlb_ops *ops = q->device->ops;
	for (int i = 0; i < MOST; i++) {
		q->marks[i].ended = ops->event_new(q->device, 0, error);
		q->waits[i].from = ops->event_new(q->device, 1, error);
		q->waits[i].to = ops->event_new(q->device, 1, error);
		if (q->marks[i].ended == NULL || q->waits[i].from == NULL || q->waits[i].to == NULL)
			return -1;
	}
	return 0;
}

struct wlb_queued *wlb_queued_new(struct wlb_comm_trace *trace, struct wlb_device *device, struct wlb_queue *queue,
                                  const struct wlb_transport *transport, void *state, struct wlb_error *error)
{
	struct wlb_queued *q = calloc(1, sizeof(*q));
	if (q == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	q->source = (struct wlb_comm_source){.next = next, .check = check, .abort = abort_calls};
	q->trace = trace;
	q->device = device;
	q->queue = queue;
	q->transport = transport;
	q->state = state;
	int rc = make_events(q, error);
	wlb_comm_trace_add_source(trace, &q->source);
	if (rc == 0)
		return q;
	wlb_queued_free(q);
	return NULL;
}

void wlb_queued_free(struct wlb_queued *q)
{
	if (q == NULL)
		return;
	const struct wlb_ops *ops = q->device->ops;
	wlb_comm_trace_remove_source(q->trace, &q->source);
	for (int i = 0; i < MOST; i++) {
		ops->event_free(q->device, q->marks[i].ended);
		ops->event_free(q->device, q->waits[i].from);
		ops->event_free(q->device, q->waits[i].to);
	}
	free(q);
}

/* Where all marks are in use the newest is moved behind this call: then it is the end of both. */
void wlb_queued_add(struct wlb_queued *q, const struct wlb_comm_event *event)
{
	wlb_comm_trace_poll(q->trace);
	wlb_comm_trace_lock(q->trace);
	if (q->marked - q->ended < MOST)
		q->marked++;
	struct mark *mark = &q->marks[(q->marked - 1) % MOST];
	mark->call = *event;
	q->device->ops->event_record(q->device, mark->ended, q->queue);
	wlb_comm_trace_unlock(q->trace);
}

struct wlb_queued_waits wlb_queued_waits(struct wlb_queued *q)
{
	const struct wlb_ops *ops = q->device->ops;
	while (q->measured < q->awaited) {
		struct wait *wait = &q->waits[q->measured % MOST];
		if (!ops->event_done(q->device, wait->to))
			break;
		double waited_s = ops->event_elapsed_s(q->device, wait->from, wait->to);
		q->total.all_s += waited_s;
		if (wait->kind == WLB_COMM_RECV)
			q->total.receives_s += waited_s;
		q->measured++;
	}
	return q->total;
}

void wlb_queued_await(struct wlb_queued *q, struct wlb_event *done, enum wlb_comm_kind kind)
{
	const struct wlb_ops *ops = q->device->ops;
	wlb_queued_waits(q);
	struct wait *wait = q->awaited - q->measured < MOST ? &q->waits[q->awaited++ % MOST] : NULL;
	if (wait != NULL) {
		wait->kind = kind;
		ops->event_record(q->device, wait->from, NULL);
	}
	ops->queue_wait(q->device, NULL, done);
	if (wait != NULL)
		ops->event_record(q->device, wait->to, NULL);
}
