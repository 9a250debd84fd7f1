/* Assigns the spans of one step by themselves, as the balanced strategy does. */
#include "libwlb/packing/assign.h"

#include <stdlib.h>

struct wlb_balancer {
	double (*work)(const void *context, int64_t tokens);
	const void *work_context;
	struct wlb_assignment assignment;
};

enum { DOES_NOT_FIT = 1, BINS_MAX = 1 << 24 };

static int deal_whole(struct wlb_balancer *balancer, const int64_t *tokens, size_t count, struct wlb_error *error)
{
	struct wlb_assignment *assignment = &balancer->assignment;
	for (size_t i = 0; i < count; i++) {
		if (tokens[i] < 0)
			return wlb_fail(error, "span %zu has %lld tokens: it must not be negative", i,
			                (long long)tokens[i]);
		double work = balancer->work(balancer->work_context, tokens[i]);
		if (wlb_work_check(work, tokens[i], "span", (int64_t)i, error) < 0)
			return -1;
		assignment->spans[i] = (struct wlb_assigned_span){.span.tokens = tokens[i], .work = work, .bin = -1};
		wlb_assignment_add(assignment, i);
	}
	wlb_assignment_sort(assignment);
	wlb_assignment_place(assignment, INT64_MAX);
	for (size_t i = 0; i < count; i++)
		if (assignment->spans[i].bin < 0) {
			wlb_fail(error, "span %zu of %lld tokens does not fit in %d micro-batches of %lld", i,
			         (long long)tokens[i], assignment->bins.count, (long long)assignment->bins.max_tokens);
			return DOES_NOT_FIT;
		}
	wlb_assignment_refine(assignment);
	return 0;
}

static int reserve(struct wlb_balancer *balancer, size_t count, int32_t bins, int64_t max_tokens)
{
	struct wlb_assignment *assignment = &balancer->assignment;
	if (wlb_assignment_init(assignment, bins, max_tokens) < 0)
		return -1;
	return wlb_assignment_reserve(assignment, count + 1);
}

struct wlb_balancer *wlb_balancer_new(double (*work)(const void *context, int64_t tokens), const void *work_context,
                                      struct wlb_error *error)
{
	struct wlb_balancer *balancer = calloc(1, sizeof(*balancer));
	if (balancer == NULL) {
		wlb_fail(error, "out of memory while making a balancer");
		return NULL;
	}
	balancer->work = work;
	balancer->work_context = work_context;
	return balancer;
}

void wlb_balancer_free(struct wlb_balancer *balancer)
{
	if (balancer == NULL)
		return;
	wlb_assignment_free(&balancer->assignment);
	free(balancer);
}

int wlb_balancer_pack(struct wlb_balancer *balancer, const int64_t *tokens, size_t count, int32_t bins,
                      int64_t max_tokens, int32_t *bin_of, struct wlb_error *error)
{
	if (bins < 1 || bins > BINS_MAX)
		return wlb_fail(error, "%d micro-batches: it must be between 1 and %d", bins, BINS_MAX);
	if (wlb_max_tokens_check(max_tokens, error) < 0)
		return -1;
	if (reserve(balancer, count, bins, max_tokens) < 0)
		return wlb_fail(error, "out of memory while packing %zu spans", count);
	int rc = deal_whole(balancer, tokens, count, error);
	for (size_t i = 0; rc == 0 && i < count; i++)
		bin_of[i] = balancer->assignment.spans[i].bin;
	return rc;
}

int wlb_pack_balanced(const struct wlb_model *model, const int64_t *tokens, size_t count, int32_t bins,
                      int64_t max_tokens, int32_t *bin_of, struct wlb_error *error)
{
	struct wlb_balancer once = {.work = wlb_assignment_flops, .work_context = model};
	int rc = wlb_balancer_pack(&once, tokens, count, bins, max_tokens, bin_of, error);
	wlb_assignment_free(&once.assignment);
	return rc == 0 ? 0 : -1;
}
