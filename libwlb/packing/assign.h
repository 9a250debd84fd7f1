/* Assigning spans to bins: most work first to the lightest that has space (Graham 1969), then exchanges. */
#ifndef LIBWLB_PACKING_ASSIGN_H
#define LIBWLB_PACKING_ASSIGN_H

#include "libwlb/packing/bins.h"

struct wlb_assigned_span {
	struct wlb_span span;
	double work;
	int64_t came_step;
	int32_t bin; /* -1: in none */
};

/* A span by its index in the array, to be ordered by work. */
struct wlb_work_order {
	double work;
	size_t span;
};

struct wlb_assignment {
	struct wlb_bins bins;
	struct wlb_assigned_span *spans; /* `count` of `capacity`; the order they came in */
	size_t count;
	size_t capacity;
	struct wlb_work_order *order; /* `ordered` of `capacity`: the spans that are assigned */
	size_t ordered;
	size_t *head; /* of each bin's chain of spans, most work first; while refining */
	size_t *next;
	struct wlb_buffer head_buffer;
};

/* Makes it hold no spans and empty bins, in the memory of its last use; zero it before the first. Returns -1 if out of
 * memory: then it may be freed or initialized again. A zeroed assignment may be freed. */
int wlb_assignment_init(struct wlb_assignment *assignment, int32_t bins, int64_t max_tokens);
void wlb_assignment_free(struct wlb_assignment *assignment);

/* Makes space for `count` spans. Returns -1 if out of memory; the spans are unchanged. */
int wlb_assignment_reserve(struct wlb_assignment *assignment, size_t count);

/* Adds a span, by its index, to those that are assigned. Sort once all are added: most work first, equal work in the
 * order of the array. */
void wlb_assignment_add(struct wlb_assignment *assignment, size_t span);
void wlb_assignment_sort(struct wlb_assignment *assignment);

/* Puts the added spans that came by step `came_by` and are in no bin into the lightest bin that has space, in order; a
 * span that fits nowhere stays out. */
void wlb_assignment_place(struct wlb_assignment *assignment, int64_t came_by);

/* Moves and swaps spans out of the heaviest bin while that lowers its work. The heap of the bins is invalid afterwards.
 */
void wlb_assignment_refine(struct wlb_assignment *assignment);

#endif
