#include "coordinator/wlb/top/calls.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/group_places.h"

enum { CALLS_OF_KIND = 2 };

/* ---- groups of the layout ---------------------------------------------------------------------------------------- */

/* The kind of a group is the beginning of its name: edges of the pipeline have names such as "pp 0>1". */
static size_t kind_length(const char *name)
{
	size_t length = 0;
	while (isalpha((unsigned char)name[length]) || name[length] == '_')
		length++;
	return length;
}

/* Returns -1 where the members do not follow from the layout. */
static int find_group(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank,
                      const struct wlb_top_group *group, struct wlb_group_id *id)
{
	if (!ranks->has_layout || rank->place < 0)
		return -1;
	return wlb_group_find(&ranks->layout, group->name, group->ranks, rank->place, id);
}

/* Whether the places of two ranks are those of one group. */
static bool are_together(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *a, const struct wlb_top_rank *b,
                         const struct wlb_top_group *group)
{
	struct wlb_group_id of_a, of_b;
	return a == b || (find_group(ranks, a, group, &of_a) == 0 && find_group(ranks, b, group, &of_b) == 0 &&
	                  of_a.first == of_b.first);
}

/* ---- the oldest calls -------------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct wlb_top_rank *x = *(const struct wlb_top_rank *const *)a;
	const struct wlb_top_rank *y = *(const struct wlb_top_rank *const *)b;
	if (x->call_for_s != y->call_for_s)
		return x->call_for_s > y->call_for_s ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static bool is_same_call(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *a, const struct wlb_top_rank *b)
{
	return strcmp(a->call_group->name, b->call_group->name) == 0 && a->call_seq == b->call_seq &&
	       are_together(ranks, a, b, a->call_group);
}

static bool is_same_kind(const struct wlb_top_rank *a, const struct wlb_top_rank *b)
{
	size_t length = kind_length(a->call_group->name);
	return kind_length(b->call_group->name) == length &&
	       strncmp(a->call_group->name, b->call_group->name, length) == 0;
}

/* Whether the rank's call is neither one of the calls found, nor the third of its kind. */
static bool is_wanted(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank,
                      const struct wlb_top_rank *const *callers, int count)
{
	int of_kind = 0;
	for (int i = 0; i < count; i++) {
		if (is_same_call(ranks, callers[i], rank))
			return false;
		of_kind += is_same_kind(callers[i], rank);
	}
	return of_kind < CALLS_OF_KIND;
}

int wlb_top_calls_find(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *callers[WLB_TOP_CALLS_MAX])
{
	const struct wlb_top_rank **waiting = calloc((size_t)ranks->count + 1, sizeof(const struct wlb_top_rank *));
	int waiting_count = 0, count = 0;
	if (waiting == NULL)
		return -1;
	for (int i = 0; i < ranks->count; i++)
		if (ranks->list[i].call != NULL && strcmp(ranks->list[i].process, "gone") != 0)
			waiting[waiting_count++] = &ranks->list[i];
	qsort(waiting, (size_t)waiting_count, sizeof(*waiting), by_time);
	for (int i = 0; i < waiting_count && count < WLB_TOP_CALLS_MAX; i++)
		if (is_wanted(ranks, waiting[i], callers, count))
			callers[count++] = waiting[i];
	free(waiting);
	return count;
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

static void add_member(const struct wlb_top_rank *caller, const struct wlb_top_rank *rank,
                       struct wlb_top_members *members)
{
	const struct wlb_top_group *group = wlb_top_rank_group(rank, caller->call_group->name);
	int64_t entered = group != NULL ? group->entered : 0, left = group != NULL ? group->left : 0;
	if (rank == caller || (entered >= caller->call_seq && left < caller->call_seq))
		members->inside[members->inside_count++] = rank->rank;
	else if (entered >= caller->call_seq) /* it has left the call */
		return;
	else if (rank->is_reported && rank->age_s < caller->call_for_s)
		members->outside[members->outside_count++] = rank->rank;
	else
		members->unknown_count++;
}

int wlb_top_members_find(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *caller,
                         struct wlb_top_members *members)
{
	size_t size = (size_t)ranks->count + 1;
	*members = (struct wlb_top_members){.inside = calloc(size, sizeof(int)), .outside = calloc(size, sizeof(int))};
	if (members->inside == NULL || members->outside == NULL)
		return -1;
	for (int i = 0; i < ranks->count; i++)
		if (are_together(ranks, caller, &ranks->list[i], caller->call_group))
			add_member(caller, &ranks->list[i], members);
	return 0;
}

void wlb_top_members_free(struct wlb_top_members *members)
{
	free(members->inside);
	free(members->outside);
	*members = (struct wlb_top_members){0};
}
