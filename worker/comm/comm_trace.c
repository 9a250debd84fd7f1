#include "worker/comm/comm_trace.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct wlb_comm_trace {
	struct wlb_rank_trace *memory, *own;
	atomic_flag looking; /* a thread looks at the members below */
	struct wlb_comm_source *sources;
	double moved_s; /* when a call of a source last ended */
};

static const long LOOK_AGAIN_NS = 100000;

/* The training thread, which tells of its calls, must not wait for another one: only others, and it when it opens and
 * closes communicators, call begin_look. */
static int try_look(struct wlb_comm_trace *trace)
{
	return !atomic_flag_test_and_set_explicit(&trace->looking, memory_order_acquire);
}

static void begin_look(struct wlb_comm_trace *trace)
{
	while (!try_look(trace))
		nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN_NS}, NULL);
}

static void end_look(struct wlb_comm_trace *trace)
{
	atomic_flag_clear_explicit(&trace->looking, memory_order_release);
}

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
	return trace;
}

void wlb_comm_trace_free(struct wlb_comm_trace *trace)
{
	if (trace == NULL)
		return;
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
	begin_look(trace);
	source->after = trace->sources;
	trace->sources = source;
	end_look(trace);
}

void wlb_comm_trace_remove_source(struct wlb_comm_trace *trace, struct wlb_comm_source *source)
{
	begin_look(trace);
	struct wlb_comm_source **link = &trace->sources;
	while (*link != NULL && *link != source)
		link = &(*link)->after;
	if (*link != NULL)
		*link = source->after;
	end_look(trace);
}

/* Adds the calls that have ended to the trace. Returns 1 and the oldest one that has not, else 0. */
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
	if (!try_look(trace))
		return;
	poll_sources(trace, &oldest);
	end_look(trace);
}

int wlb_comm_trace_check(struct wlb_comm_trace *trace, struct wlb_error *error)
{
	int rc = 0;
	begin_look(trace);
	for (struct wlb_comm_source *source = trace->sources; source != NULL && rc == 0; source = source->after)
		rc = source->check(source, error);
	end_look(trace);
	return rc;
}

void wlb_comm_trace_abort(struct wlb_comm_trace *trace)
{
	begin_look(trace);
	for (struct wlb_comm_source *source = trace->sources; source != NULL; source = source->after)
		source->abort(source);
	end_look(trace);
}

int wlb_comm_trace_waiting(struct wlb_comm_trace *trace, struct wlb_trace_event *event)
{
	if (wlb_rank_trace_blocked(trace->memory, event))
		return 1;
	begin_look(trace);
	int waiting = poll_sources(trace, event);
	end_look(trace);
	return waiting;
}
