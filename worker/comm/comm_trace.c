#include "worker/comm/comm_trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct wlb_comm_trace {
	struct wlb_rank_trace *memory, *own;
	pthread_mutex_t lock; /* of the members below */
	struct wlb_comm_source *sources;
	double moved_s; /* when a call of a source last ended */
};

struct wlb_comm_trace *wlb_comm_trace_new(void)
{
	struct wlb_comm_trace *trace = calloc(1, sizeof(*trace));
	if (trace == NULL)
		return NULL;
	trace->own = calloc(1, wlb_rank_trace_bytes());
	if (trace->own == NULL) {
		free(trace);
		return NULL;
	}
	trace->memory = trace->own;
	pthread_mutex_init(&trace->lock, NULL);
	return trace;
}

void wlb_comm_trace_free(struct wlb_comm_trace *trace)
{
	if (trace == NULL)
		return;
	pthread_mutex_destroy(&trace->lock);
	free(trace->own);
	free(trace);
}

void wlb_comm_trace_keep_in(struct wlb_comm_trace *trace, struct wlb_rank_trace *memory)
{
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	int count = wlb_rank_trace_groups(trace->memory, groups);
	for (int i = 0; i < count; i++)
		wlb_rank_trace_add_group(memory, groups[i].name, groups[i].ranks);
	trace->memory = memory;
}

struct wlb_rank_trace *wlb_comm_trace_memory(const struct wlb_comm_trace *trace)
{
	return trace->memory;
}

void wlb_comm_trace_name(const struct wlb_comm_trace *trace, const struct wlb_trace_event *event,
                         char name[WLB_TRACE_NAME_SIZE])
{
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	int count = wlb_rank_trace_groups(trace->memory, groups);
	snprintf(name, WLB_TRACE_NAME_SIZE, "%s", event->group < count ? groups[event->group].name : "?");
}

void wlb_comm_trace_add_source(struct wlb_comm_trace *trace, struct wlb_comm_source *source)
{
	pthread_mutex_lock(&trace->lock);
	source->after = trace->sources;
	trace->sources = source;
	pthread_mutex_unlock(&trace->lock);
}

void wlb_comm_trace_remove_source(struct wlb_comm_trace *trace, struct wlb_comm_source *source)
{
	pthread_mutex_lock(&trace->lock);
	struct wlb_comm_source **link = &trace->sources;
	while (*link != NULL && *link != source)
		link = &(*link)->after;
	if (*link != NULL)
		*link = source->after;
	pthread_mutex_unlock(&trace->lock);
}

void wlb_comm_trace_lock(struct wlb_comm_trace *trace)
{
	pthread_mutex_lock(&trace->lock);
}

void wlb_comm_trace_unlock(struct wlb_comm_trace *trace)
{
	pthread_mutex_unlock(&trace->lock);
}

/* Adds the calls that have ended to the trace. Returns 1 and the oldest one that has not, else 0. Under the lock. */
static int poll_sources(struct wlb_comm_trace *trace, struct wlb_trace_event *oldest)
{
	int found = 0, state;
	for (struct wlb_comm_source *source = trace->sources; source != NULL; source = source->after) {
		struct wlb_trace_event event;
		while ((state = source->next(source, &event)) == 1) {
			trace->moved_s = event.left_s;
			wlb_rank_trace_ended(trace->memory, &event);
		}
		if (state == 2 && (!found || event.entered_s < oldest->entered_s)) {
			*oldest = event;
			found = 1;
		}
	}
	if (found)
		oldest->blocked_s = oldest->entered_s > trace->moved_s ? oldest->entered_s : trace->moved_s;
	return found;
}

void wlb_comm_trace_poll(struct wlb_comm_trace *trace)
{
	struct wlb_trace_event oldest;
	pthread_mutex_lock(&trace->lock);
	poll_sources(trace, &oldest);
	pthread_mutex_unlock(&trace->lock);
}

int wlb_comm_trace_check(struct wlb_comm_trace *trace, struct wlb_error *error)
{
	int rc = 0;
	pthread_mutex_lock(&trace->lock);
	for (struct wlb_comm_source *source = trace->sources; source != NULL && rc == 0; source = source->after)
		rc = source->check(source, error);
	pthread_mutex_unlock(&trace->lock);
	return rc;
}

void wlb_comm_trace_abort(struct wlb_comm_trace *trace)
{
	pthread_mutex_lock(&trace->lock);
	for (struct wlb_comm_source *source = trace->sources; source != NULL; source = source->after)
		source->abort(source);
	pthread_mutex_unlock(&trace->lock);
}

int wlb_comm_trace_waiting(struct wlb_comm_trace *trace, struct wlb_trace_event *event)
{
	if (wlb_rank_trace_blocked(trace->memory, event))
		return 1;
	pthread_mutex_lock(&trace->lock);
	int waiting = poll_sources(trace, event);
	pthread_mutex_unlock(&trace->lock);
	return waiting;
}
