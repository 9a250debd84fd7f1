/* Orders plans that are nearly equally fast, and plans that do not fit, by how usual their layout is. */
#include <stdlib.h>
#include <string.h>

#include "libwlb/layout/search_state.h"

enum { MORE_THAN_PRIMES = 64, IDLE_GPUS = 2 * MORE_THAN_PRIMES };

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

/* Returns how unusual a layout is: 0 where tp, cp and pp are powers of two; the number of other primes that
 * divide cp x pp; more than any such number where tp is not a power of two. */
static int unusual(const struct wlb_layout *layout)
{
	int power = (layout->tp & (layout->tp - 1)) == 0;
	return odd_primes((int64_t)layout->cp * layout->pp) + (power ? 0 : MORE_THAN_PRIMES);
}

/* The less, the better: GPUs that are idle count most. */
static int reluctance(const struct wlb_search *search, const struct wlb_candidate *c)
{
	int idle = search->options.prefer_every_gpu && c->gpus < search->gpus;
	return unusual(&c->plan.layout) + (idle ? IDLE_GPUS : 0);
}

int wlb_search_prefer(const struct wlb_search *search, const struct wlb_search_plan **plans, size_t count)
{
	size_t chosen = 0;
	double most_s = plans[0]->candidate.step_s * (1.0 + search->options.near_equal);
	for (size_t i = 1; i < count && plans[i]->candidate.step_s <= most_s; i++)
		if (reluctance(search, &plans[i]->candidate) < reluctance(search, &plans[chosen]->candidate))
			chosen = i;
	if (chosen == 0)
		return 0;
	const struct wlb_search_plan *first = plans[chosen];
	memmove(plans + 1, plans, chosen * sizeof(*plans));
	plans[0] = first;
	return 1;
}

static int same_layout(const struct wlb_search_plan *a, const struct wlb_search_plan *b)
{
	const struct wlb_layout *x = &a->candidate.plan.layout, *y = &b->candidate.plan.layout;
	return x->tp == y->tp && x->cp == y->cp && x->pp == y->pp;
}

void wlb_search_group_misfits(struct wlb_search *search)
{
	for (size_t i = 0, end; i < search->count; i = end) {
		struct wlb_search_plan *least = &search->plans[i];
		for (end = i; end < search->count && same_layout(&search->plans[i], &search->plans[end]); end++) {
			search->plans[end].misfit_group = 2;
			if (search->plans[end].candidate.missing_bytes < least->candidate.missing_bytes)
				least = &search->plans[end];
		}
		if (least->candidate.missing_bytes > 0.0)
			least->misfit_group = unusual(&least->candidate.plan.layout) > 0;
	}
}

/* A plan that does not fit; small, since there may be many. */
struct misfit {
	double missing_bytes;
	int group;
	const struct wlb_search_plan *plan;
};

static int by_group(const void *a, const void *b)
{
	const struct misfit *x = a, *y = b;
	if (x->group != y->group)
		return x->group - y->group;
	double p = x->missing_bytes, q = y->missing_bytes;
	return p != q ? (p < q ? -1 : 1) : (x->plan > y->plan) - (x->plan < y->plan);
}

int wlb_search_order_misfits(const struct wlb_search_plan **plans, size_t count)
{
	struct misfit *all = calloc(count + 1, sizeof(*all));
	if (all == NULL)
		return -1;
	for (size_t i = 0; i < count; i++)
		all[i] = (struct misfit){plans[i]->candidate.missing_bytes, plans[i]->misfit_group, plans[i]};
	qsort(all, count, sizeof(*all), by_group);
	for (size_t i = 0; i < count; i++)
		plans[i] = all[i].plan;
	free(all);
	return 0;
}
