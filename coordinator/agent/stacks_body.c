#include "coordinator/agent/stacks_body.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_text.h"
#include "common/seconds.h"
#include "coordinator/stacks/thread_state.h"

enum {
	CALLS_MAX = 32,
	CALLS_MIN = 8,
	HEAD_BYTES = 1024, /* of the body, beside the ranks */
};

/* The coordinator refuses numbers above these. */
static const double seconds_max = 1e7;
static const uint64_t number_max = UINT64_C(1000000000000000);

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static double seconds(double from_s, double to_s)
{
	double length_s = to_s - from_s;
	return length_s > 0.0 ? round(1e6 * fmin(length_s, seconds_max)) / 1e6 : 0.0;
}

static json_int_t at_most(uint64_t number)
{
	return (json_int_t)(number < number_max ? number : number_max);
}

/* [kind, group, seq, bytes, how long it took, how long ago it ended or null where it has not] */
static json_t *call_json(const struct wlb_trace_event *call, const char *group, double now_s)
{
	int has_ended = call->left_s != 0.0;
	char name[WLB_TRACE_NAME_SIZE] = "";
	for (size_t i = 0; i + 1 < sizeof(name) && group[i] != '\0'; i++)
		name[i] = group[i] >= ' ' && group[i] <= '~' ? group[i] : '?';
	return json_pack("[s, s, I, I, f, o]", wlb_comm_kind_name(call->kind), name, at_most(call->seq),
	                 at_most(call->bytes), seconds(call->entered_s, has_ended ? call->left_s : now_s),
	                 has_ended ? json_real(seconds(call->left_s, now_s)) : json_null());
}

/* The newest calls that have ended, then the call that the rank is in. */
static json_t *calls_json(const struct wlb_rank_trace *trace)
{
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	struct wlb_trace_event *events = calloc(WLB_TRACE_EVENTS, sizeof(*events)), blocked;
	uint64_t next = 0;
	json_t *list = json_array();
	wlb_rank_trace_groups(trace, groups);
	size_t count = events != NULL ? wlb_rank_trace_read(trace, &next, events, WLB_TRACE_EVENTS) : 0;
	size_t ended_max = CALLS_MAX - 1;
	double now_s = wlb_now_s();
	for (size_t i = count > ended_max ? count - ended_max : 0; i < count; i++)
		json_array_append_new(list, call_json(&events[i], groups[events[i].group].name, now_s));
	if (wlb_rank_trace_blocked(trace, &blocked))
		json_array_append_new(list, call_json(&blocked, groups[blocked.group].name, now_s));
	free(events);
	return list;
}

static const struct wlb_rank_trace *find_trace(const struct wlb_node_page *page, int rank)
{
	const struct wlb_rank_trace *trace;
	for (int i = 0; (trace = wlb_node_page_area(page, i)) != NULL; i++)
		if (wlb_rank_trace_rank(trace) == rank)
			return trace;
	return NULL;
}

/* ---- the size ---------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const json_t *value)
{
	return json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENSURE_ASCII);
}

static void omit_threads(json_t *rank, size_t max)
{
	json_t *threads = json_object_get(rank, "threads");
	size_t bytes = bytes_of(rank);
	json_int_t omitted = json_integer_value(json_object_get(rank, "left_out"));
	while (bytes > max && json_array_size(threads) > 1) {
		size_t last = json_array_size(threads) - 1;
		bytes -= bytes_of(json_array_get(threads, last)) + 1;
		json_array_remove(threads, last);
		omitted++;
	}
	json_object_set_new(rank, "left_out", json_integer(omitted));
}

static void omit_calls(json_t *rank, size_t max)
{
	json_t *calls = json_object_get(rank, "calls");
	while (json_array_size(calls) > CALLS_MIN && bytes_of(rank) > max)
		json_array_remove(calls, 0);
}

static void omit_frames(json_t *rank, size_t max)
{
	json_t *thread = json_array_get(json_object_get(rank, "threads"), 0);
	json_t *frames = json_object_get(thread, "frames");
	while (json_array_size(frames) > 0 && bytes_of(rank) > max)
		json_array_remove(frames, 0);
}

/* ---- a rank ------------------------------------------------------------------------------------------------------ */

/* What the kernel says of the process, in the form that wlb-stacks prints. */
static json_t *without_stack(const struct wlb_agent_trainer *trainer)
{
	struct wlb_thread thread = {.pid = trainer->pid, .tid = trainer->pid};
	wlb_thread_look(&thread);
	return json_pack("{s:i, s:s%, s:s, s:[{s:i, s:i, s:s, s:s%, s:s, s:[]}], s:i}", "pid", (int)trainer->pid,
	                 "state", &thread.state, (size_t)1, "note", "wlb-stacks did not answer in time on this node",
	                 "threads", "pid", (int)trainer->pid, "tid", (int)trainer->pid, "name", thread.name, "state",
	                 &thread.state, (size_t)1, "waits_in", thread.waits_in, "frames", "left_out", 0);
}

json_t *wlb_stacks_rank(const json_t *printed, const struct wlb_agent_trainer *trainer,
                        const struct wlb_node_page *page, int ranks, size_t other_bytes)
{
	size_t max = (WLB_STACKS_BODY_BYTES - HEAD_BYTES - other_bytes) / (size_t)ranks;
	const struct wlb_rank_trace *trace = trainer->is_launched ? NULL : find_trace(page, trainer->rank);
	json_t *rank = printed != NULL ? json_deep_copy(printed) : without_stack(trainer);
	if (rank == NULL)
		return NULL;
	json_object_set_new(rank, "rank", json_integer(trainer->rank));
	json_object_set_new(rank, "task", json_integer(trainer->task));
	json_object_set_new(rank, "calls", trace != NULL ? calls_json(trace) : json_array());
	omit_threads(rank, max);
	omit_calls(rank, max);
	omit_frames(rank, max);
	return rank;
}

char *wlb_stacks_body(const char *attempt_id, const char *node, json_int_t stacks_id, json_t *entries)
{
	json_t *body = json_pack("{s:s, s:o, s:I, s:o}", "attempt_id", attempt_id, "node", wlb_json_text(node),
	                         "stacks_id", stacks_id, "ranks", entries);
	char *text = body != NULL ? json_dumps(body, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	json_decref(body);
	return text;
}
