#include "worker/comm/queued.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/seconds.h"

enum { MARKS_MAX = 64, WAITS_MAX = 65536 };

/* A call, and an event behind it on the queue. */
struct mark {
	atomic_int is_used; /* by the thread that changes it or looks at it */
	struct wlb_trace_event call;
	struct wlb_event *ended;
};

/* A wait of the compute queue, between two events there. */
struct wait {
	struct wlb_event *from, *to;
	enum wlb_comm_kind kind;
	int part;
	struct wait *next; /* of the idle ones, or in the order of the queue */
};

struct wlb_queued {
	struct wlb_comm_source source; /* first: the trace gives it back */
	struct wlb_comm_trace *trace;
	struct wlb_device *device;
	struct wlb_queue *queue;
	const struct wlb_transport *transport;
	void *state;
	/* A ring: number i is at i % MARKS_MAX. The training thread adds marks, and whoever looks at the trace takes
	 * them off, one thread at a time; neither waits for the other. */
	struct mark marks[MARKS_MAX];
	_Atomic uint64_t marked, ended;
	/* A wait that is measured is used again, so that a step with no more waits than those before allocates nothing.
	 */
	struct wait *idle, *oldest, *newest;
	int wait_count;
	int awaited[WLB_COMM_PARTS],
		most_awaited[WLB_COMM_PARTS]; /* waits of a part since it was taken; the most so far */
	struct wlb_comm_waits total, of_part[WLB_COMM_PARTS];
};

/* Returns 0 where the other thread uses the mark. */
static int use(struct mark *mark)
{
	int unused = 0;
	return atomic_compare_exchange_strong_explicit(&mark->is_used, &unused, 1, memory_order_acq_rel,
	                                               memory_order_acquire);
}

static void end_use(struct mark *mark)
{
	atomic_store_explicit(&mark->is_used, 0, memory_order_release);
}

static int next(struct wlb_comm_source *source, struct wlb_trace_event *event)
{
	struct wlb_queued *q = (struct wlb_queued *)source;
	uint64_t ended = atomic_load_explicit(&q->ended, memory_order_relaxed);
	struct mark *oldest = &q->marks[ended % MARKS_MAX];
	if (ended == atomic_load_explicit(&q->marked, memory_order_acquire) || !use(oldest))
		return 0;
	*event = oldest->call;
	int has_ended = q->device->ops->event_done(q->device, oldest->ended);
	end_use(oldest); /* before the other thread may use its place in the ring again */
	if (!has_ended)
		return 2;
	event->left_s = wlb_now_s();
	atomic_store_explicit(&q->ended, ended + 1, memory_order_release);
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
	for (int i = 0; i < MARKS_MAX; i++) {
		q->marks[i].ended = ops->event_new(q->device, 0, error);
		if (q->marks[i].ended == NULL)
			return -1;
	}
	return 0;
}

static void wait_free(struct wlb_queued *q, struct wait *wait)
{
	q->device->ops->event_free(q->device, wait->from);
	q->device->ops->event_free(q->device, wait->to);
	free(wait);
}

static void free_waits(struct wlb_queued *q, struct wait *wait)
{
	while (wait != NULL) {
		struct wait *next = wait->next;
		wait_free(q, wait);
		wait = next;
	}
}

static struct wait *wait_new(struct wlb_queued *q)
{
	const struct wlb_ops *ops = q->device->ops;
	struct wlb_error ignored; /* the wait is not measured then */
	struct wait *wait = q->wait_count < WAITS_MAX ? calloc(1, sizeof(*wait)) : NULL;
	if (wait == NULL)
		return NULL;
	wait->from = ops->event_new(q->device, 1, &ignored);
	wait->to = ops->event_new(q->device, 1, &ignored);
	if (wait->from != NULL && wait->to != NULL) {
		q->wait_count++;
		return wait;
	}
	wait_free(q, wait);
	return NULL;
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
	for (int i = 0; i < MARKS_MAX; i++)
		ops->event_free(q->device, q->marks[i].ended);
	free_waits(q, q->idle);
	free_waits(q, q->oldest);
	free(q);
}

static void set_mark(const struct wlb_queued *q, struct mark *mark, const struct wlb_trace_event *event)
{
	mark->call = *event;
	q->device->ops->event_record(q->device, mark->ended, q->queue);
}

static int has_space(const struct wlb_queued *q, uint64_t marked)
{
	return marked - atomic_load_explicit(&q->ended, memory_order_acquire) < MARKS_MAX;
}

/* Where all marks are in the ring, moves the newest behind the call: then it is the end of both. Returns 0 where it is
 * being taken off, or was: then there is space. */
static int move_newest(struct wlb_queued *q, uint64_t marked, const struct wlb_trace_event *event)
{
	struct mark *newest = &q->marks[(marked - 1) % MARKS_MAX];
	if (!use(newest))
		return 0;
	int is_full = !has_space(q, marked);
	if (is_full)
		set_mark(q, newest, event);
	end_use(newest);
	return is_full;
}

void wlb_queued_add(struct wlb_queued *q, const struct wlb_trace_event *event)
{
	wlb_comm_trace_poll(q->trace);
	uint64_t marked = atomic_load_explicit(&q->marked, memory_order_relaxed);
	if (!has_space(q, marked) && move_newest(q, marked, event))
		return;
	set_mark(q, &q->marks[marked % MARKS_MAX], event);
	atomic_store_explicit(&q->marked, marked + 1, memory_order_release);
}

static void measure(struct wlb_queued *q, const struct wait *wait)
{
	double waited_s = q->device->ops->event_elapsed_s(q->device, wait->from, wait->to);
	struct wlb_comm_waits *const sums[] = {&q->total, &q->of_part[wait->part]};
	for (int i = 0; i < 2; i++) {
		sums[i]->all_s += waited_s;
		if (wait->kind == WLB_COMM_RECV)
			sums[i]->receives_s += waited_s;
	}
}

struct wlb_comm_waits wlb_queued_waits(struct wlb_queued *q)
{
	while (q->oldest != NULL && q->device->ops->event_done(q->device, q->oldest->to)) {
		struct wait *wait = q->oldest;
		measure(q, wait);
		q->oldest = wait->next;
		wait->next = q->idle;
		q->idle = wait;
	}
	return q->total;
}

static void end_count(struct wlb_queued *q, int part)
{
	if (q->awaited[part] > q->most_awaited[part])
		q->most_awaited[part] = q->awaited[part];
	q->awaited[part] = 0;
}

/* Makes as many waits as all parts have had together: a later step finds an idle one also where the device is further
 * behind the host than it was before. */
static void reserve_waits(struct wlb_queued *q)
{
	int most = 0;
	for (int part = 0; part < WLB_COMM_PARTS; part++)
		most += q->most_awaited[part];
	while (q->wait_count < most) {
		struct wait *wait = wait_new(q);
		if (wait == NULL)
			return;
		wait->next = q->idle;
		q->idle = wait;
	}
}

struct wlb_comm_waits wlb_queued_take_waits(struct wlb_queued *q, int part)
{
	wlb_queued_waits(q);
	struct wlb_comm_waits waits = q->of_part[part];
	q->of_part[part] = (struct wlb_comm_waits){0};
	end_count(q, part);
	end_count(q, 0); /* which nobody takes */
	reserve_waits(q);
	return waits;
}

static struct wait *take_idle(struct wlb_queued *q)
{
	struct wait *wait = q->idle;
	if (wait == NULL)
		return wait_new(q);
	q->idle = wait->next;
	return wait;
}

static void append(struct wlb_queued *q, struct wait *wait)
{
	wait->next = NULL;
	if (q->oldest == NULL)
		q->oldest = wait;
	else
		q->newest->next = wait;
	q->newest = wait;
}

void wlb_queued_await(struct wlb_queued *q, struct wlb_event *done, enum wlb_comm_kind kind, int part)
{
	const struct wlb_ops *ops = q->device->ops;
	/* Of the other parts they are measured when the part is read: how many there are then does not depend on how
	 * fast the device is. */
	if (part == 0 || q->wait_count == WAITS_MAX)
		wlb_queued_waits(q);
	struct wait *wait = take_idle(q);
	if (wait != NULL)
		ops->event_record(q->device, wait->from, NULL);
	ops->queue_wait(q->device, NULL, done);
	q->awaited[part]++;
	if (wait == NULL)
		return;
	ops->event_record(q->device, wait->to, NULL);
	wait->kind = kind;
	wait->part = part;
	append(q, wait);
}
