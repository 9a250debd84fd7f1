#include "coordinator/wlbd/api/reports/stacks_read.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/wlbd/api/reports/activity_read.h"
#include "coordinator/wlbd/http/fields.h"

#define NUMBER_MAX INT64_C(1000000000000000)
#define SECONDS_MAX 1e7

enum {
	THREAD_NAME_MAX = 63, /* bytes of a thread's name, or a function of the kernel */
	NOTE_MAX = 255,       /* bytes */
	OMITTED_MAX = 1 << 20,
	CALL_FIELDS = 6,
};

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* Terminals show them. */
static int check_printable(const char *what, const char *text, struct wlb_error *error)
{
	for (const char *c = text; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			return wlb_fail(error, "%s: byte %d must be a printable character of ASCII", what,
			                (unsigned char)*c);
	return 0;
}

static int check_text(const json_t *object, const char *name, enum wlbd_need need, size_t max, struct wlb_error *error)
{
	const char *text = "";
	char what[64];
	snprintf(what, sizeof(what), "field '%s'", name);
	if (wlbd_field_text(object, name, need, max, &text, error) != 0)
		return -1;
	return check_printable(what, text, error);
}

/* A letter as in /proc/PID/stat, '?' where the process is gone. */
static int check_state(const json_t *object, struct wlb_error *error)
{
	const char *state = NULL;
	if (wlbd_field_text(object, "state", WLBD_REQUIRED, 1, &state, error) != 0)
		return -1;
	if (state[0] == '\0' || strchr("RSDTtZXxKWPI?", state[0]) == NULL)
		return wlb_fail(error, "field 'state': '%s' must be a letter of proc(5), such as R, S, D, T, or '?'",
		                state);
	return 0;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* An array of texts: frames, or lines. */
static int check_texts(const json_t *object, const char *name, enum wlbd_need need, size_t max, struct wlb_error *error)
{
	const json_t *texts = NULL;
	if (wlbd_field_array(object, name, need, max, &texts, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(texts); i++) {
		const json_t *text = json_array_get(texts, i);
		if (!json_is_string(text) || json_string_length(text) > WLBD_STACKS_FRAME_MAX)
			return wlb_fail(error, "%s[%zu]: must be a string of at most %d bytes", name, i,
			                WLBD_STACKS_FRAME_MAX);
		if (check_printable("text", json_string_value(text), error) != 0)
			return wlb_fail_in(error, "%s[%zu]", name, i);
	}
	return 0;
}

static int check_thread(const json_t *thread, struct wlb_error *error)
{
	int64_t number;
	if (!json_is_object(thread))
		return wlb_fail(error, "must be an object");
	if (wlbd_field_integer(thread, "pid", WLBD_REQUIRED, 1, INT_MAX, &number, error) != 0 ||
	    wlbd_field_integer(thread, "tid", WLBD_REQUIRED, 1, INT_MAX, &number, error) != 0 ||
	    check_text(thread, "name", WLBD_REQUIRED, THREAD_NAME_MAX, error) != 0 || check_state(thread, error) != 0 ||
	    check_text(thread, "waits_in", WLBD_OPTIONAL, THREAD_NAME_MAX, error) != 0)
		return -1;
	return check_texts(thread, "frames", WLBD_REQUIRED, WLBD_STACKS_FRAMES_MAX, error);
}

static int check_threads(const json_t *rank, struct wlb_error *error)
{
	const json_t *threads = NULL;
	if (wlbd_field_array(rank, "threads", WLBD_REQUIRED, WLBD_STACKS_THREADS_MAX, &threads, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(threads); i++)
		if (check_thread(json_array_get(threads, i), error) != 0)
			return wlb_fail_in(error, "threads[%zu]", i);
	return 0;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static bool is_kind(const char *text)
{
	for (int i = 0; text != NULL && wlbd_call_kind_names[i] != NULL; i++)
		if (strcmp(text, wlbd_call_kind_names[i]) == 0)
			return true;
	return false;
}

static bool is_whole(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= NUMBER_MAX;
}

static bool is_seconds(const json_t *value)
{
	return json_is_number(value) && json_number_value(value) >= 0 && json_number_value(value) <= SECONDS_MAX;
}

/* [kind, group, sequence number, bytes, seconds that it took, seconds since it ended or null] */
static int check_call(const json_t *call, struct wlb_error *error)
{
	const char *group = json_string_value(json_array_get(call, 1));
	const json_t *ended = json_array_get(call, 5);
	if (json_array_size(call) != CALL_FIELDS || !is_kind(json_string_value(json_array_get(call, 0))) ||
	    group == NULL || strlen(group) >= WLBD_ACTIVITY_GROUP_NAME_SIZE || !is_whole(json_array_get(call, 2)) ||
	    !is_whole(json_array_get(call, 3)) || !is_seconds(json_array_get(call, 4)) ||
	    !(json_is_null(ended) || is_seconds(ended)))
		return wlb_fail(error,
		                "must be an array of kind, group, sequence number, bytes, seconds that it took, and "
		                "seconds since it ended or null");
	return check_printable("group", group, error);
}

static int check_calls(const json_t *rank, struct wlb_error *error)
{
	const json_t *calls = NULL;
	if (wlbd_field_array(rank, "calls", WLBD_OPTIONAL, WLBD_STACKS_CALLS_MAX, &calls, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(calls); i++)
		if (check_call(json_array_get(calls, i), error) != 0)
			return wlb_fail_in(error, "calls[%zu]", i);
	return 0;
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static int64_t rank_of(const json_t *ranks, size_t i)
{
	return json_integer_value(json_object_get(json_array_get(ranks, i), "rank"));
}

/* Returns the rank of the Slurm task, one of the attempt's: a launcher has started others below it. */
static int64_t task_of(const json_t *ranks, size_t i)
{
	const json_t *task = json_object_get(json_array_get(ranks, i), "task");
	return json_is_integer(task) ? json_integer_value(task) : rank_of(ranks, i);
}

static int check_rank(const json_t *ranks, size_t i, struct wlb_error *error)
{
	const json_t *rank = json_array_get(ranks, i);
	int64_t number;
	if (!json_is_object(rank))
		return wlb_fail(error, "must be an object");
	if (wlbd_field_integer(rank, "rank", WLBD_REQUIRED, 0, WLBD_RANKS_MAX, &number, error) != 0)
		return -1;
	for (size_t before = 0; before < i; before++)
		if (rank_of(ranks, before) == number)
			return wlb_fail(error, "rank %lld is listed twice; list each rank once", (long long)number);
	if (wlbd_field_integer(rank, "task", WLBD_OPTIONAL, 0, WLBD_RANKS_MAX, &number, error) != 0 ||
	    wlbd_field_integer(rank, "pid", WLBD_REQUIRED, 1, INT_MAX, &number, error) != 0 ||
	    wlbd_field_integer(rank, "left_out", WLBD_OPTIONAL, 0, OMITTED_MAX, &number, error) != 0 ||
	    check_text(rank, "note", WLBD_OPTIONAL, NOTE_MAX, error) != 0 || check_state(rank, error) != 0 ||
	    check_threads(rank, error) != 0 ||
	    check_texts(rank, "nccl_ras", WLBD_OPTIONAL, WLBD_STACKS_RAS_LINES_MAX, error) != 0)
		return -1;
	return check_calls(rank, error);
}

int wlbd_stacks_read(const json_t *body, struct wlbd_stacks_body *stacks, struct wlb_error *error)
{
	*stacks = (struct wlbd_stacks_body){0};
	if (wlbd_field_uuid(body, "attempt_id", &stacks->attempt_id, error) != 0 ||
	    wlbd_field_text(body, "node", WLBD_REQUIRED, WLBD_NAME_MAX, &stacks->node, error) != 0 ||
	    wlbd_field_integer(body, "stacks_id", WLBD_REQUIRED, 1, INT64_MAX, &stacks->stacks_id, error) != 0 ||
	    wlbd_field_array(body, "ranks", WLBD_REQUIRED, WLBD_STACKS_RANKS_MAX, &stacks->ranks, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(stacks->ranks); i++)
		if (check_rank(stacks->ranks, i, error) != 0)
			return wlb_fail_in(error, "ranks[%zu]", i);
	return 0;
}

int wlbd_stacks_belong(const struct wlbd_stacks_body *stacks, const struct wlbd_attempt_nodes *nodes,
                       struct wlb_error *error)
{
	if (!wlbd_attempt_nodes_may_have(nodes, stacks->node))
		return wlb_fail(error, "node '%.100s': is not one of the attempt's; send stacks of its own nodes only",
		                stacks->node);
	for (size_t i = 0; i < json_array_size(stacks->ranks); i++)
		if (!wlbd_attempt_nodes_may_run(nodes, stacks->node, task_of(stacks->ranks, i)))
			return wlb_fail(
				error,
				"rank %lld: the attempt has no such rank on node %s; send stacks of its own ranks only",
				(long long)task_of(stacks->ranks, i), stacks->node);
	return 0;
}

/* ---- what is stored ---------------------------------------------------------------------------------------------- */

static json_t *copy_members(const json_t *object, const char *const *names)
{
	json_t *copy = json_object();
	for (; *names != NULL; names++) {
		json_t *member = json_object_get(object, *names);
		if (member != NULL)
			json_object_set(copy, *names, member);
	}
	return copy;
}

static json_t *copy_rank(const json_t *rank)
{
	static const char *const rank_names[] = {"rank", "pid", "state", "note", "left_out", "calls", "nccl_ras", NULL};
	static const char *const thread_names[] = {"pid", "tid", "name", "state", "waits_in", "frames", NULL};
	const json_t *threads = json_object_get(rank, "threads");
	json_t *copy = copy_members(rank, rank_names), *list = json_array();
	for (size_t i = 0; i < json_array_size(threads); i++)
		json_array_append_new(list, copy_members(json_array_get(threads, i), thread_names));
	json_object_set_new(copy, "threads", list);
	return copy;
}

char *wlbd_stacks_text(const struct wlbd_stacks_body *stacks)
{
	json_t *list = json_array();
	for (size_t i = 0; i < json_array_size(stacks->ranks); i++)
		json_array_append_new(list, copy_rank(json_array_get(stacks->ranks, i)));
	char *text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	return text;
}
