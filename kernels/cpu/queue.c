/* Queues and events of the CPU device, where an operation has ended when its call returns. */
#include "kernels/cpu/cpu.h"

#include <stdlib.h>
#include <time.h>

struct wlb_queue {
	int high_priority; /* unused: nothing waits in a queue */
};

struct wlb_event {
	double recorded_s; /* CLOCK_MONOTONIC */
};

struct wlb_queue *wlb_cpu_queue_new(struct wlb_device *device, int high_priority, struct wlb_error *error)
{
	(void)device;
	struct wlb_queue *queue = calloc(1, sizeof(*queue));
	if (queue == NULL)
		wlb_fail(error, "out of memory for a queue of the CPU device");
	else
		queue->high_priority = high_priority;
	return queue;
}

void wlb_cpu_queue_free(struct wlb_device *device, struct wlb_queue *queue)
{
	(void)device;
	free(queue);
}

void *wlb_cpu_queue_handle(struct wlb_device *device, struct wlb_queue *queue)
{
	(void)device, (void)queue;
	return NULL;
}

struct wlb_event *wlb_cpu_event_new(struct wlb_device *device, int timed, struct wlb_error *error)
{
	(void)device, (void)timed;
	struct wlb_event *event = calloc(1, sizeof(*event));
	if (event == NULL)
		wlb_fail(error, "out of memory for an event of the CPU device");
	return event;
}

void wlb_cpu_event_free(struct wlb_device *device, struct wlb_event *event)
{
	(void)device;
	free(event);
}

void wlb_cpu_event_record(struct wlb_device *device, struct wlb_event *event, struct wlb_queue *queue)
{
	(void)device, (void)queue;
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	event->recorded_s = (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void wlb_cpu_queue_wait(struct wlb_device *device, struct wlb_queue *queue, struct wlb_event *event)
{
	(void)device, (void)queue, (void)event;
}

int wlb_cpu_event_wait(struct wlb_device *device, struct wlb_event *event, struct wlb_error *error)
{
	(void)event;
	return wlb_cpu_synchronize(device, error);
}

int wlb_cpu_event_done(struct wlb_device *device, struct wlb_event *event)
{
	(void)device, (void)event;
	return 1;
}

double wlb_cpu_event_elapsed_s(struct wlb_device *device, struct wlb_event *from, struct wlb_event *to)
{
	(void)device;
	return to->recorded_s - from->recorded_s;
}

void wlb_cpu_to_device(struct wlb_device *device, struct wlb_queue *queue, void *to, const void *from_host,
                       size_t bytes)
{
	(void)queue;
	wlb_cpu_copy(device, to, from_host, bytes);
}

void wlb_cpu_to_host_start(struct wlb_device *device, struct wlb_queue *queue, void *to_host, const void *from,
                           size_t bytes)
{
	(void)queue;
	wlb_cpu_copy(device, to_host, from, bytes);
}

/* Returns the time of the calling thread alone. It computes its share of every operation, and all shares are equal, so
 * that its time is comparable between ranks with the same number of threads. The time of the whole process would also
 * count threads that do not compute. */
double wlb_cpu_busy_s(struct wlb_device *device)
{
	(void)device;
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
