#include "coordinator/wlbd/detection/activities.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/budget.h"

/* A report that arrives late was sent over a connection that has been closed since, and takes no longer. After that
 * time smaller numbers are believed: the process of the rank was started again. */
enum { LATE_MAX_MS = 10000 };

static size_t bytes_of(int group_count)
{
	return sizeof(struct wlbd_kept_activity) + (size_t)group_count * sizeof(struct wlbd_activity_group);
}

/* ---- which of two reports is older ------------------------------------------------------------------------------- */

/* Returns the group of that name; it is likely to have the same index in every report. NULL: there is none. */
static const struct wlbd_activity_group *find_group(const struct wlbd_kept_activity *kept, const char *name, int likely)
{
	if (likely < kept->activity.group_count && strcmp(kept->groups[likely].name, name) == 0)
		return &kept->groups[likely];
	for (int i = 0; i < kept->activity.group_count; i++)
		if (strcmp(kept->groups[i].name, name) == 0)
			return &kept->groups[i];
	return NULL;
}

/* Steps and sequence numbers of a rank only grow while its process runs, and a process that is gone stays gone. */
static bool is_older(const struct wlbd_activity *activity, const struct wlbd_activity_group *groups,
                     const struct wlbd_kept_activity *kept, int64_t now_ms)
{
	bool is_gone = activity->process == WLBD_PROCESS_GONE;
	bool was_gone = kept->activity.process == WLBD_PROCESS_GONE;
	if (now_ms - kept->arrived_ms > LATE_MAX_MS)
		return false;
	if (is_gone != was_gone)
		return was_gone;
	if (activity->step < kept->activity.step)
		return true;
	for (int i = 0; i < activity->group_count; i++) {
		const struct wlbd_activity_group *before = find_group(kept, groups[i].name, i);
		if (before != NULL && (groups[i].entered < before->entered || groups[i].left < before->left))
			return true;
	}
	return false;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int charge(const struct wlbd_activities *activities, size_t bytes)
{
	return wlbd_budget_take(activities->budget, activities->uid, bytes) == WLBD_BUDGET_TAKEN ? 0 : -1;
}

static void give_back(const struct wlbd_activities *activities, size_t bytes)
{
	wlbd_budget_give(activities->budget, activities->uid, bytes);
}

static int grow(struct wlbd_activities *activities, int count)
{
	int size = 2 * activities->size > count ? 2 * activities->size : count;
	if (count <= activities->size)
		return 0;
	size_t more_bytes = (size_t)(size - activities->size) * sizeof(*activities->of_rank);
	if (charge(activities, more_bytes) != 0)
		return -1;
	struct wlbd_kept_activity **of_rank = realloc(activities->of_rank, (size_t)size * sizeof(*of_rank));
	if (of_rank == NULL) {
		give_back(activities, more_bytes);
		return -1;
	}
	memset(of_rank + activities->size, 0, more_bytes);
	activities->of_rank = of_rank;
	activities->size = size;
	return 0;
}

/* Makes the rank's place fit that number of groups; what was kept there is lost where that number is another. */
static int make_place(struct wlbd_activities *activities, int rank, int group_count)
{
	struct wlbd_kept_activity *before = activities->of_rank[rank];
	if (before != NULL && before->activity.group_count == group_count)
		return 0;
	if (charge(activities, bytes_of(group_count)) != 0)
		return -1;
	struct wlbd_kept_activity *kept = calloc(1, bytes_of(group_count));
	if (kept == NULL) {
		give_back(activities, bytes_of(group_count));
		return -1;
	}
	if (before != NULL)
		give_back(activities, bytes_of(before->activity.group_count));
	free(before);
	activities->of_rank[rank] = kept;
	return 0;
}

/* ---- activities -------------------------------------------------------------------------------------------------- */

int wlbd_activities_keep(struct wlbd_activities *activities, const struct wlbd_activity *activity,
                         const struct wlbd_activity_group *groups, const char *node, int64_t now_ms)
{
	int rank = activity->rank;
	if (rank >= WLBD_ACTIVITY_RANKS_MAX)
		return 0;
	const struct wlbd_kept_activity *before = wlbd_activities_of(activities, rank);
	if (before != NULL && is_older(activity, groups, before, now_ms))
		return 0;
	if (grow(activities, rank + 1) != 0 || make_place(activities, rank, activity->group_count) != 0)
		return -1;
	struct wlbd_kept_activity *kept = activities->of_rank[rank];
	kept->arrived_ms = now_ms;
	kept->node = node;
	kept->activity = *activity;
	for (int i = 0; i < activity->group_count; i++)
		kept->groups[i] = groups[i];
	return 0;
}

const struct wlbd_kept_activity *wlbd_activities_of(const struct wlbd_activities *activities, int rank)
{
	return rank < activities->size ? activities->of_rank[rank] : NULL;
}

void wlbd_activities_free(struct wlbd_activities *activities)
{
	for (int i = 0; i < activities->size; i++) {
		if (activities->of_rank[i] == NULL)
			continue;
		give_back(activities, bytes_of(activities->of_rank[i]->activity.group_count));
		free(activities->of_rank[i]);
	}
	give_back(activities, (size_t)activities->size * sizeof(*activities->of_rank));
	free(activities->of_rank);
	activities->of_rank = NULL;
	activities->size = 0;
}
