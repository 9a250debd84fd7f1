/* Assigns spans to bins: the span with the most work first, to the lightest bin that has space (Graham 1969); then
 * exchanges spans. */
#ifndef LIBWLB_PACKING_ASSIGN_H
#define LIBWLB_PACKING_ASSIGN_H

#include "libwlb/packing/bin_tree.h"
#include "libwlb/packing/bins.h"

struct wlb_assigned_span {
	struct wlb_span span;
	double work;
	int64_t arrival_step;
	int32_t bin;     /* -1: in none */
	int32_t is_part; /* 1: of a document that is longer than the window or was cut before */
};

/* The index of a span and its work, for sorting by work. */
struct wlb_work_order {
	double work;
	size_t span;
};

struct wlb_assignment {
	struct wlb_bins bins;
	struct wlb_assigned_span *spans; /* `count` of `capacity`, in order of arrival */
	size_t count;
	size_t capacity;
	struct wlb_work_order *order; /* `ordered` of `capacity`: the spans that are assigned */
	size_t ordered;
	size_t *head; /* of each bin's chain of spans, most work first; while refining */
	size_t *next;
	struct wlb_buffer head_buffer;
	struct wlb_bin_tree lightest, heaviest, emptiest; /* of the bins, while a function needs them */
	int64_t steps;                                    /* through chains, of the last refinement */
};

/* Returns 0 where `work` can be that of `tokens` tokens: finite and above 0, or 0 for none. Returns -1 with a message
 * that calls the span `what` `number`. */
int wlb_work_check(double work, int64_t tokens, const char *what, int64_t number, struct wlb_error *error);

/* wlb_cost_document of a struct wlb_model, as a function of work. */
double wlb_assignment_flops(const void *model, int64_t tokens);

/* Returns 0 where bins may have this limit, -1 with the value and the rule otherwise. */
int wlb_max_tokens_check(int64_t max_tokens, struct wlb_error *error);

/* Makes an assignment without spans and with empty bins, in the memory of its last use; zero it before the first use.
 * Returns -1 if out of memory; the assignment may then be freed or initialized again. A zeroed assignment may be freed.
 */
int wlb_assignment_init(struct wlb_assignment *assignment, int32_t bins, int64_t max_tokens);
void wlb_assignment_free(struct wlb_assignment *assignment);

/* Makes space for `count` spans. Returns -1 if out of memory; the spans are unchanged. */
int wlb_assignment_reserve(struct wlb_assignment *assignment, size_t count);

/* Adds a span, by its index, to the spans that are to be assigned. Sort them once all are added: most work first, equal
 * work in the order of the array. */
void wlb_assignment_add(struct wlb_assignment *assignment, size_t span);
void wlb_assignment_sort(struct wlb_assignment *assignment);

/* Puts each added span that arrived by step `arrived_by` and is in no bin into the lightest bin that has space, in
 * order; a span that fits in no bin keeps bin -1. */
void wlb_assignment_place(struct wlb_assignment *assignment, int64_t arrived_by);

/* Moves spans out of the heaviest bin, or exchanges them with others, while that lowers its work, for a number of
 * operations proportional to spans and bins. The heap of the bins is invalid afterwards. */
void wlb_assignment_refine(struct wlb_assignment *assignment);

#endif
