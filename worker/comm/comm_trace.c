#include "worker/comm/comm_trace.h"

#include <pthread.h>
#include <stdlib.h>

struct wlb_comm_trace {
	pthread_mutex_t lock;
	size_t capacity;
	uint64_t entered; /* events begun so far; event i lives in slot i % capacity */
	uint64_t left;    /* events ended: entered or entered - 1 */
	int waits_for_device;
	struct wlb_comm_event device_wait; /* the call that begins when the device has done what it waits for */
	struct wlb_comm_event events[];
};

const char *wlb_comm_kind_name(enum wlb_comm_kind kind)
{
	static const char *const names[] = {
		[WLB_COMM_ALL_REDUCE] = "all_reduce",
		[WLB_COMM_ALL_REDUCE_DOUBLE] = "all_reduce_double",
		[WLB_COMM_REDUCE_SCATTER] = "reduce_scatter",
		[WLB_COMM_ALL_GATHER] = "all_gather",
		[WLB_COMM_SEND] = "send",
		[WLB_COMM_RECV] = "recv",
	};
	return names[kind];
}

struct wlb_comm_trace *wlb_comm_trace_new(size_t capacity)
{
	struct wlb_comm_trace *trace = calloc(1, sizeof(*trace) + capacity * sizeof(trace->events[0]));
	if (trace == NULL)
		return NULL;
	pthread_mutex_init(&trace->lock, NULL);
	trace->capacity = capacity;
	return trace;
}

void wlb_comm_trace_free(struct wlb_comm_trace *trace)
{
	if (trace == NULL)
		return;
	pthread_mutex_destroy(&trace->lock);
	free(trace);
}

void wlb_comm_trace_enter(struct wlb_comm_trace *trace, const struct wlb_comm_event *event)
{
	pthread_mutex_lock(&trace->lock);
	trace->events[trace->entered % trace->capacity] = *event;
	trace->entered++;
	pthread_mutex_unlock(&trace->lock);
}

void wlb_comm_trace_leave(struct wlb_comm_trace *trace, double left_s)
{
	pthread_mutex_lock(&trace->lock);
	trace->events[trace->left % trace->capacity].left_s = left_s;
	trace->left = trace->entered;
	pthread_mutex_unlock(&trace->lock);
}

void wlb_comm_trace_wait_device(struct wlb_comm_trace *trace, const struct wlb_comm_event *event)
{
	pthread_mutex_lock(&trace->lock);
	trace->waits_for_device = event != NULL;
	if (event != NULL)
		trace->device_wait = *event;
	pthread_mutex_unlock(&trace->lock);
}

int wlb_comm_trace_waiting(struct wlb_comm_trace *trace, struct wlb_comm_event *event)
{
	pthread_mutex_lock(&trace->lock);
	int waiting = trace->entered > trace->left;
	if (waiting)
		*event = trace->events[trace->left % trace->capacity];
	else if (trace->waits_for_device)
		*event = trace->device_wait;
	waiting |= trace->waits_for_device;
	pthread_mutex_unlock(&trace->lock);
	return waiting;
}

size_t wlb_comm_trace_read(struct wlb_comm_trace *trace, uint64_t *next, struct wlb_comm_event *events, size_t max)
{
	pthread_mutex_lock(&trace->lock);
	uint64_t oldest = trace->entered > trace->capacity ? trace->entered - trace->capacity : 0;
	if (*next < oldest)
		*next = oldest;
	size_t count = 0;
	for (; count < max && *next < trace->left; (*next)++)
		events[count++] = trace->events[*next % trace->capacity];
	pthread_mutex_unlock(&trace->lock);
	return count;
}
