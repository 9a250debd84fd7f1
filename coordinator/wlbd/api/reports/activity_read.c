#include "coordinator/wlbd/api/reports/activity_read.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/api/reports/entry_values.h"
#include "coordinator/wlbd/http/fields.h"

#define SECONDS_MAX 1e7
#define WORK_MAX 1e30
#define STEP_MAX INT64_C(1000000000000)
#define SEQ_MAX INT64_C(1000000000000000)
#define BYTES_MAX INT64_C(1000000000000000000)

const char *const wlbd_activity_names[] = {"starting", "loading", "computing", "saving", "evaluating", "ending", NULL};
const char *const wlbd_activity_process_names[] = {"running", "stopped", "gone", NULL};
const char *const wlbd_call_kind_names[] = {
	"all_reduce", "all_reduce_double", "reduce_scatter", "all_gather", "send", "recv", NULL};

static int read_choice(const json_t *object, const char *name, const char *const *choices, int *index,
                       struct wlb_error *error)
{
	const char *text = NULL;
	if (wlbd_field_choice(object, name, WLBD_REQUIRED, choices, &text, error) != 0)
		return -1;
	for (*index = 0; strcmp(choices[*index], text) != 0;)
		(*index)++;
	return 0;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* [name, ranks, last sequence number entered, last left] */
static int read_group(const json_t *entry, struct wlbd_activity_group *group, struct wlb_error *error)
{
	int64_t ranks;
	if (!json_is_array(entry) || json_array_size(entry) != 4)
		return wlbd_value_refuse("group", entry,
		                         "an array of name, ranks, last sequence number entered and last left", error);
	if (wlbd_value_name("name", json_array_get(entry, 0), group->name, sizeof(group->name), error) != 0 ||
	    wlbd_value_integer("ranks", json_array_get(entry, 1), 1, WLBD_RANKS_MAX, &ranks, error) != 0 ||
	    wlbd_value_integer("entered", json_array_get(entry, 2), 0, SEQ_MAX, &group->entered, error) != 0 ||
	    wlbd_value_integer("left", json_array_get(entry, 3), 0, group->entered, &group->left, error) != 0)
		return -1;
	group->ranks = (int)ranks;
	return 0;
}

static int read_groups(const json_t *entry, struct wlbd_activity *activity, struct wlbd_activity_group *groups,
                       struct wlb_error *error)
{
	const json_t *list = NULL;
	if (wlbd_field_array(entry, "groups", WLBD_OPTIONAL, WLBD_ACTIVITY_GROUPS_MAX, &list, error) != 0)
		return -1;
	activity->group_count = (int)json_array_size(list);
	for (int i = 0; i < activity->group_count; i++)
		if (read_group(json_array_get(list, (size_t)i), &groups[i], error) != 0)
			return wlb_fail_in(error, "groups[%d]", i);
	return 0;
}

/* ---- an entry ---------------------------------------------------------------------------------------------------- */

static int read_call(const json_t *object, struct wlbd_activity *activity, struct wlb_error *error)
{
	struct wlbd_activity_call *call = &activity->call;
	int64_t group = 0;
	if (activity->group_count == 0)
		return wlb_fail(error, "field 'group': the rank has no groups; list the one of the call in 'groups'");
	if (read_choice(object, "kind", wlbd_call_kind_names, &call->kind, error) != 0 ||
	    wlbd_field_integer(object, "group", WLBD_REQUIRED, 0, activity->group_count - 1, &group, error) != 0 ||
	    wlbd_field_integer(object, "seq", WLBD_REQUIRED, 0, SEQ_MAX, &call->seq, error) != 0 ||
	    wlbd_field_integer(object, "bytes", WLBD_REQUIRED, 0, BYTES_MAX, &call->bytes, error) != 0 ||
	    wlbd_field_number(object, "for_s", WLBD_REQUIRED, 0, SECONDS_MAX, &call->for_s, error) != 0)
		return -1;
	call->group = (int)group;
	activity->is_in_call = true;
	return 0;
}

static int read_corruption(const json_t *object, struct wlbd_corruption *corruption, struct wlb_error *error)
{
	int64_t suspects = 0, first = 0, other = 0;
	if (wlbd_field_integer(object, "step", WLBD_REQUIRED, 0, STEP_MAX, &corruption->step, error) != 0 ||
	    wlbd_field_integer(object, "suspects", WLBD_REQUIRED, 1, WLBD_RANKS_MAX, &suspects, error) != 0 ||
	    wlbd_field_integer(object, "first", WLBD_REQUIRED, 0, WLBD_RANKS_MAX, &first, error) != 0 ||
	    wlbd_field_integer(object, "other", WLBD_REQUIRED, 0, WLBD_RANKS_MAX, &other, error) != 0)
		return -1;
	corruption->suspects = (int)suspects;
	corruption->first = (int)first;
	corruption->other = (int)other;
	return 0;
}

int wlbd_activity_read(const json_t *entry, struct wlbd_activity *activity,
                       struct wlbd_activity_group groups[WLBD_ACTIVITY_GROUPS_MAX], struct wlb_error *error)
{
	const json_t *call = NULL, *corruption = NULL;
	int64_t rank = 0;
	int process = 0;
	bool is_traced = false;
	*activity = (struct wlbd_activity){0};
	if (!json_is_object(entry))
		return wlbd_value_refuse("entry", entry, "an object", error);
	if (wlbd_field_integer(entry, "rank", WLBD_REQUIRED, 0, WLBD_RANKS_MAX, &rank, error) != 0 ||
	    wlbd_field_integer(entry, "step", WLBD_REQUIRED, 0, STEP_MAX, &activity->step, error) != 0 ||
	    read_choice(entry, "activity", wlbd_activity_names, &activity->kind, error) != 0 ||
	    wlbd_field_number(entry, "for_s", WLBD_REQUIRED, 0, SECONDS_MAX, &activity->for_s, error) != 0 ||
	    wlbd_field_number(entry, "work", WLBD_OPTIONAL, 0, WORK_MAX, &activity->work, error) != 0 ||
	    read_choice(entry, "process", wlbd_activity_process_names, &process, error) != 0 ||
	    wlbd_field_boolean(entry, "traced", WLBD_OPTIONAL, &is_traced, error) != 0 ||
	    read_groups(entry, activity, groups, error) != 0 ||
	    wlbd_field_object(entry, "corruption", WLBD_OPTIONAL, &corruption, error) != 0 ||
	    wlbd_field_object(entry, "call", WLBD_OPTIONAL, &call, error) != 0)
		return -1;
	activity->rank = (int)rank;
	activity->process = (enum wlbd_activity_process)process;
	activity->is_traced = is_traced;
	if (call != NULL && read_call(call, activity, error) != 0)
		return wlb_fail_in(error, "call");
	if (corruption != NULL && read_corruption(corruption, &activity->corruption, error) != 0)
		return wlb_fail_in(error, "corruption");
	return 0;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

static int check_each_once(int *ranks, size_t count, struct wlb_error *error)
{
	qsort(ranks, count, sizeof(*ranks), by_value);
	for (size_t i = 1; i < count; i++)
		if (ranks[i] == ranks[i - 1])
			return wlb_fail(error, "field 'activities': rank %d is listed twice; list each rank once",
			                ranks[i]);
	return 0;
}

int wlbd_activities_check(const json_t *body, const json_t **activities, struct wlb_error *error)
{
	struct wlbd_activity activity;
	struct wlbd_activity_group groups[WLBD_ACTIVITY_GROUPS_MAX];
	int ranks[WLBD_NODE_RANKS_MAX];
	if (wlbd_field_array(body, "activities", WLBD_OPTIONAL, WLBD_NODE_RANKS_MAX, activities, error) != 0)
		return -1;
	size_t count = json_array_size(*activities);
	for (size_t i = 0; i < count; i++) {
		if (wlbd_activity_read(json_array_get(*activities, i), &activity, groups, error) != 0)
			return wlb_fail_in(error, "activities[%zu]", i);
		ranks[i] = activity.rank;
	}
	return check_each_once(ranks, count, error);
}
