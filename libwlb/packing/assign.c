#include "libwlb/packing/assign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The limit of a bin's tokens: the sum of two bins, while spans are exchanged, must not overflow. The largest batch of
 * a search in one bin, 2^20 windows of 2^30 tokens at 64 times their length, is below. */
static const int64_t most_tokens = (int64_t)1 << 60;

int wlb_work_check(double work, int64_t tokens, const char *what, int64_t number, struct wlb_error *error)
{
	if (isfinite(work) && (work > 0.0 || (work == 0.0 && tokens == 0)))
		return 0;
	return wlb_fail(error, "%s %lld: the work of %lld tokens is %g: it must be finite and above 0", what,
	                (long long)number, (long long)tokens, work);
}

double wlb_assignment_flops(const void *model, int64_t tokens)
{
	return wlb_cost_document(model, tokens);
}

int wlb_max_tokens_check(int64_t max_tokens, struct wlb_error *error)
{
	if (max_tokens >= 0 && max_tokens <= most_tokens)
		return 0;
	return wlb_fail(error, "max_tokens is %lld: it must be between 0 and %lld", (long long)max_tokens,
	                (long long)most_tokens);
}

int wlb_assignment_init(struct wlb_assignment *assignment, int32_t bins, int64_t max_tokens)
{
	assignment->count = 0;
	assignment->ordered = 0;
	assignment->head = wlb_buffer_zeroed(&assignment->head_buffer, (size_t)bins, sizeof(*assignment->head));
	if (assignment->head == NULL || wlb_bin_tree_init(&assignment->lightest, bins) < 0 ||
	    wlb_bin_tree_init(&assignment->heaviest, bins) < 0 || wlb_bin_tree_init(&assignment->emptiest, bins) < 0)
		return -1;
	return wlb_bins_init(&assignment->bins, bins, max_tokens);
}

void wlb_assignment_free(struct wlb_assignment *assignment)
{
	wlb_bins_free(&assignment->bins);
	wlb_bin_tree_free(&assignment->lightest);
	wlb_bin_tree_free(&assignment->heaviest);
	wlb_bin_tree_free(&assignment->emptiest);
	free(assignment->spans);
	free(assignment->order);
	wlb_buffer_free(&assignment->head_buffer);
	free(assignment->next);
	memset(assignment, 0, sizeof(*assignment));
}

int wlb_assignment_reserve(struct wlb_assignment *assignment, size_t count)
{
	size_t spans = assignment->capacity, order = assignment->capacity, next = assignment->capacity;
	if (wlb_grow((void **)&assignment->spans, &spans, count, sizeof(*assignment->spans)) < 0 ||
	    wlb_grow((void **)&assignment->order, &order, count, sizeof(*assignment->order)) < 0 ||
	    wlb_grow((void **)&assignment->next, &next, count, sizeof(*assignment->next)) < 0)
		return -1;
	assignment->capacity = spans; /* all three have the same capacity */
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

void wlb_assignment_place(struct wlb_assignment *assignment, int64_t arrived_by)
{
	for (size_t r = 0; r < assignment->ordered; r++) {
		struct wlb_assigned_span *assigned = &assignment->spans[assignment->order[r].span];
		if (assigned->bin < 0 && assigned->arrival_step <= arrived_by)
			assigned->bin = wlb_bins_put(&assignment->bins, assigned->span.tokens, assigned->work);
	}
}
