#include "libwlb/packing/assign.h"

#include <stdlib.h>
#include <string.h>

int wlb_assignment_init(struct wlb_assignment *assignment, int32_t bins, int64_t max_tokens)
{
	assignment->count = 0;
	assignment->ordered = 0;
	assignment->head = wlb_room_take(&assignment->head_room, (size_t)bins, sizeof(*assignment->head));
	return assignment->head == NULL ? -1 : wlb_bins_init(&assignment->bins, bins, max_tokens);
}

void wlb_assignment_free(struct wlb_assignment *assignment)
{
	wlb_bins_free(&assignment->bins);
	free(assignment->spans);
	free(assignment->order);
	wlb_room_free(&assignment->head_room);
	free(assignment->next);
	memset(assignment, 0, sizeof(*assignment));
}

/* Grows one array; its place is updated even where a later one finds no memory, which does no harm. */
static int grow(void **array, size_t capacity, size_t size)
{
	void *grown = reallocarray(*array, capacity, size);
	if (grown == NULL)
		return -1;
	*array = grown;
	return 0;
}

int wlb_assignment_reserve(struct wlb_assignment *assignment, size_t capacity)
{
	if (capacity <= assignment->capacity)
		return 0;
	if (grow((void **)&assignment->spans, capacity, sizeof(*assignment->spans)) < 0 ||
	    grow((void **)&assignment->order, capacity, sizeof(*assignment->order)) < 0 ||
	    grow((void **)&assignment->next, capacity, sizeof(*assignment->next)) < 0)
		return -1;
	assignment->capacity = capacity;
	return 0;
}

void wlb_assignment_add(struct wlb_assignment *assignment, size_t span)
{
	assignment->order[assignment->ordered++] =
		(struct wlb_work_order){.work = assignment->spans[span].work, .span = span};
}

static int more_work_first(const void *a, const void *b)
{
	const struct wlb_work_order *x = a, *y = b;
	if (x->work != y->work)
		return x->work > y->work ? -1 : 1;
	return x->span < y->span ? -1 : x->span > y->span;
}

void wlb_assignment_sort(struct wlb_assignment *assignment)
{
	qsort(assignment->order, assignment->ordered, sizeof(*assignment->order), more_work_first);
}

void wlb_assignment_place(struct wlb_assignment *assignment, int64_t came_by)
{
	for (size_t r = 0; r < assignment->ordered; r++) {
		struct wlb_assigned_span *assigned = &assignment->spans[assignment->order[r].span];
		if (assigned->bin < 0 && assigned->came_step <= came_by)
			assigned->bin = wlb_bins_put(&assignment->bins, assigned->span.tokens, assigned->work);
	}
}
