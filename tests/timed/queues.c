#include "tests/timed/queues.h"

#include <math.h>
#include <stdlib.h>

#include "tests/timed/clock.h"
#include "tests/timed/device.h"

/* A moment on a queue: at_s, or the end of a call if that is later. */
struct wlb_event {
	double at_s;
	struct wlb_queue *queue; /* of the call; NULL: there is none */
	int64_t call;
};

/* Returns the time of the event; -1 where it is not known yet, and `wait` is 0. */
static double time_of(const struct wlb_event *event, int wait)
{
	struct wlb_queue *queue = event->queue;
	double end_s = queue != NULL ? queue->call_end_s(queue->messages, event->call, wait) : 0.0;
	return end_s < 0.0 ? -1.0 : fmax(event->at_s, end_s);
}

static struct wlb_queue *queue_new(struct wlb_device *device, int high_priority, struct wlb_error *error)
{
	(void)device, (void)high_priority;
	struct wlb_queue *queue = calloc(1, sizeof(*queue));
	if (queue == NULL)
		wlb_fail(error, "out of memory for a queue of the timed device");
	return queue;
}

static void queue_free(struct wlb_device *device, struct wlb_queue *queue)
{
	(void)device;
	free(queue);
}

static struct wlb_event *event_new(struct wlb_device *device, int timed, struct wlb_error *error)
{
	(void)device, (void)timed;
	struct wlb_event *event = calloc(1, sizeof(*event));
	if (event == NULL)
		wlb_fail(error, "out of memory for an event of the timed device");
	return event;
}

static void event_free(struct wlb_device *device, struct wlb_event *event)
{
	(void)device;
	free(event);
}

static void event_record(struct wlb_device *device, struct wlb_event *event, struct wlb_queue *queue)
{
	if (queue == NULL)
		*event = (struct wlb_event){.at_s = wlb_timed_clock_next(wlb_timed_clock_of(device))};
	else
		*event = (struct wlb_event){queue->ready_s, queue->calls > 0 ? queue : NULL, queue->calls};
}

/* The time of the event must be known here. The compute queue of a GPU waits for it instead of the host; in either case
 * nothing that the host queues afterwards begins before. */
static void queue_wait(struct wlb_device *device, struct wlb_queue *queue, struct wlb_event *event)
{
	double *ready_s = queue != NULL ? &queue->ready_s : &wlb_timed_clock_of(device)->free_s;
	*ready_s = fmax(*ready_s, time_of(event, 1));
}

static int event_wait(struct wlb_device *device, struct wlb_event *event, struct wlb_error *error)
{
	(void)error;
	device->host_waits++;
	wlb_timed_clock_sleep(time_of(event, 1));
	return 0;
}

static int event_done(struct wlb_device *device, struct wlb_event *event)
{
	(void)device;
	double at_s = time_of(event, 0);
	return at_s >= 0.0 && at_s <= wlb_timed_clock_now();
}

static double event_elapsed_s(struct wlb_device *device, struct wlb_event *from, struct wlb_event *to)
{
	(void)device;
	return time_of(to, 1) - time_of(from, 1);
}

void wlb_timed_queue_add(struct wlb_queue *queue, double takes_s)
{
	queue->ready_s = fmax(queue->ready_s, wlb_timed_clock_now()) + takes_s;
}

void wlb_timed_queues_replace(struct wlb_ops *ops)
{
	ops->queue_new = queue_new;
	ops->queue_free = queue_free;
	ops->event_new = event_new;
	ops->event_free = event_free;
	ops->event_record = event_record;
	ops->queue_wait = queue_wait;
	ops->event_wait = event_wait;
	ops->event_done = event_done;
	ops->event_elapsed_s = event_elapsed_s;
}
