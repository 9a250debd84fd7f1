#include "libwlb/layout/search_prefer.h"

#include <stdlib.h>
#include <string.h>

enum { MORE_THAN_PRIMES = 64 };

static int odd_primes(int64_t n)
{
	int count = 0;
	while (n % 2 == 0)
		n /= 2;
	for (int64_t p = 3; n > 1; p += 2) {
		if (p * p > n)
			p = n;
		count += n % p == 0;
		while (n % p == 0)
			n /= p;
	}
	return count;
}

int wlb_search_unusual(const struct wlb_layout *layout)
{
	int power = (layout->tp & (layout->tp - 1)) == 0;
	return odd_primes((int64_t)layout->cp * layout->pp) + (power ? 0 : MORE_THAN_PRIMES);
}

int wlb_search_prefer(const struct wlb_search_plan **plans, size_t count, double share)
{
	size_t chosen = 0;
	double most_s = plans[0]->candidate.step_s * (1.0 + share);
	for (size_t i = 1; i < count && plans[i]->candidate.step_s <= most_s; i++)
		if (wlb_search_unusual(&plans[i]->candidate.plan.layout) <
		    wlb_search_unusual(&plans[chosen]->candidate.plan.layout))
			chosen = i;
	if (chosen == 0)
		return 0;
	const struct wlb_search_plan *first = plans[chosen];
	memmove(plans + 1, plans, chosen * sizeof(*plans));
	plans[0] = first;
	return 1;
}

/* A plan that does not fit, and its place in the order. */
struct misfit {
	const struct wlb_search_plan *plan;
	int group; /* 0: the one of its layout that misses least, all powers of two; 1: of another layout; 2: not the
	              one that misses least */
};

static int order(double p, double q)
{
	return p < q ? -1 : p > q;
}

/* By tp, cp and pp, which come before dp. */
static int compare_layouts(const struct wlb_search_plan *a, const struct wlb_search_plan *b)
{
	return memcmp(&a->candidate.plan.layout, &b->candidate.plan.layout, offsetof(struct wlb_layout, dp));
}

static int by_layout(const void *a, const void *b)
{
	const struct wlb_search_plan *x = ((const struct misfit *)a)->plan, *y = ((const struct misfit *)b)->plan;
	int layout = compare_layouts(x, y);
	int missing = layout != 0 ? layout : order(x->candidate.missing_bytes, y->candidate.missing_bytes);
	return missing != 0 ? missing : (x > y) - (x < y);
}

static int by_group(const void *a, const void *b)
{
	const struct misfit *x = a, *y = b;
	if (x->group != y->group)
		return x->group - y->group;
	int guess = order(x->plan->guess_s, y->plan->guess_s);
	return guess != 0 ? guess : by_layout(a, b);
}

int wlb_search_order_misfits(const struct wlb_search_plan **plans, size_t count)
{
	struct misfit *all = calloc(count + 1, sizeof(*all));
	if (all == NULL)
		return -1;
	for (size_t i = 0; i < count; i++)
		all[i].plan = plans[i];
	qsort(all, count, sizeof(*all), by_layout);
	for (size_t i = 0; i < count; i++) {
		int first = i == 0 || compare_layouts(all[i - 1].plan, all[i].plan) != 0;
		all[i].group = first ? wlb_search_unusual(&all[i].plan->candidate.plan.layout) > 0 : 2;
	}
	qsort(all, count, sizeof(*all), by_group);
	for (size_t i = 0; i < count; i++)
		plans[i] = all[i].plan;
	free(all);
	return 0;
}
