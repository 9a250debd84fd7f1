/* Places the documents of a step on ranks, within the memory that they have for keys. */
#include <stdlib.h>
#include <string.h>

#include "libwlb/capacity.h"
#include "libwlb/packing/dynamic_cp.h"

/* On 2 to 16 ranks, with the lengths of wlb_lengths_init, the documents of a rank have up to 2.6 windows together. With
 * memory for fewer, more steps would be on groups of equal size, which have less equal work. */
static const int64_t key_windows = 4;

struct wlb_placer {
	struct wlb_rank_space space;
	double (*work)(const void *context, int64_t tokens);
	const void *work_context;
	struct wlb_balancer *balancer; /* of groups */
	struct wlb_place *places;      /* of each document */
	int32_t *bin_of;
	struct wlb_load *loads; /* [micro_batches, ranks] */
	size_t places_capacity, bin_of_capacity, loads_capacity;
};

int64_t wlb_dynamic_cp_micro_batches_min(int32_t dp, int64_t max_tokens, int64_t seq_length, int64_t windows)
{
	int64_t most = dp * max_tokens, tokens = windows * seq_length, beyond = most - seq_length;
	if (most >= tokens)
		return 1;
	return beyond >= seq_length ? tokens / beyond + (tokens % beyond > 0) : 2 * windows;
}

int64_t wlb_dynamic_cp_max_tokens(int32_t dp, int64_t seq_length, int64_t windows)
{
	return windows * seq_length + seq_length / dp + (seq_length % dp > 0);
}

/* Whether all documents of every step fit where each is on one of the groups of `ranks` ranks: micro-batches of one
 * group. A step of fewer windows has as many fewer micro-batches. */
static int fit_on(const struct wlb_layout *l, int32_t ranks, int64_t rank_tokens, int32_t micro_batches,
                  int64_t seq_length, int64_t windows)
{
	int64_t most = ranks * rank_tokens, beyond = most - seq_length, tokens = windows * seq_length;
	int64_t count = l->cp * l->dp / ranks * (int64_t)micro_batches;
	return most >= key_windows * seq_length && count >= tokens / beyond + (tokens % beyond > 0);
}

int32_t wlb_dynamic_cp_key_ranks(const struct wlb_layout *layout, int64_t rank_tokens, int32_t micro_batches,
                                 int64_t seq_length, int64_t windows)
{
	int32_t least = layout->cp * layout->dp;
	for (int32_t ranks = least; ranks > layout->cp;) {
		ranks = wlb_dynamic_cp_smaller(ranks);
		if (ranks < layout->cp || !fit_on(layout, ranks, rank_tokens, micro_batches, seq_length, windows))
			break;
		least = ranks;
	}
	return least;
}

struct wlb_placer *wlb_placer_new(const struct wlb_rank_space *space,
                                  double (*work)(const void *context, int64_t tokens), const void *work_context,
                                  struct wlb_error *error)
{
	struct wlb_placer *p = calloc(1, sizeof(*p));
	if (p == NULL) {
		wlb_fail(error, "out of memory for places on %d ranks", space->ranks);
		return NULL;
	}
	*p = (struct wlb_placer){.space = *space, .work = work, .work_context = work_context};
	p->balancer = wlb_balancer_new(work, work_context, error);
	if (p->balancer != NULL)
		return p;
	wlb_placer_free(p);
	return NULL;
}

void wlb_placer_free(struct wlb_placer *p)
{
	if (p == NULL)
		return;
	wlb_balancer_free(p->balancer);
	free(p->places);
	free(p->bin_of);
	free(p->loads);
	free(p);
}

static int reserve(struct wlb_placer *p, size_t count, size_t slots, struct wlb_error *error)
{
	if (wlb_grow((void **)&p->places, &p->places_capacity, count, sizeof(*p->places)) == 0 &&
	    wlb_grow((void **)&p->bin_of, &p->bin_of_capacity, count, sizeof(*p->bin_of)) == 0 &&
	    wlb_grow((void **)&p->loads, &p->loads_capacity, slots, sizeof(*p->loads)) == 0)
		return 0;
	return wlb_fail(error, "out of memory while placing %zu documents on ranks in %zu places", count, slots);
}

static int64_t most_keys(const struct wlb_placer *p)
{
	return p->space.key_ranks * p->space.rank_tokens;
}

/* Sets the loads of ranks that have equal parts of all documents of their group. */
static void load_groups(struct wlb_placer *p, const int64_t *tokens, size_t count, size_t slots)
{
	int32_t ranks = p->space.key_ranks, all_ranks = p->space.ranks;
	memset(p->loads, 0, slots * sizeof(*p->loads));
	for (size_t i = 0; i < count; i++) {
		const struct wlb_place *place = &p->places[i];
		struct wlb_load *loads = p->loads + place->micro_batch * all_ranks + place->first_rank;
		loads[0].tokens += tokens[i];
		for (int32_t r = 0; r < ranks; r++)
			loads[r].work += p->work(p->work_context, tokens[i]) / ranks;
	}
	for (size_t batch = 0; batch < slots; batch += (size_t)all_ranks)
		for (int32_t first = 0; first + ranks <= all_ranks; first += ranks) {
			struct wlb_load *loads = p->loads + batch + first;
			int64_t all = loads[0].tokens;
			for (int32_t r = 0; r < ranks; r++)
				loads[r].tokens = all / ranks + (r < all % ranks);
		}
}

static int place_in_groups(struct wlb_placer *p, const int64_t *tokens, size_t count, int32_t micro_batches,
                           struct wlb_error *error)
{
	int32_t ranks = p->space.key_ranks, groups = p->space.ranks / ranks;
	int rc = wlb_balancer_pack(p->balancer, tokens, count, groups * micro_batches, most_keys(p), p->bin_of, error);
	for (size_t i = 0; rc == 0 && i < count; i++)
		p->places[i] = (struct wlb_place){.micro_batch = p->bin_of[i] / groups,
		                                  .first_rank = p->bin_of[i] % groups * ranks,
		                                  .ranks = ranks};
	return rc;
}

int wlb_placer_place(struct wlb_placer *p, const int64_t *tokens, size_t count, int32_t micro_batches,
                     struct wlb_placement *placement, struct wlb_error *error)
{
	size_t slots = (size_t)p->space.ranks * (size_t)micro_batches;
	if (reserve(p, count, slots, error) < 0)
		return -1;
	int rc = wlb_dynamic_cp_place(p->work, p->work_context, &p->space, tokens, count, micro_batches, p->places,
	                              p->loads, error);
	int in_groups = rc > 0;
	if (in_groups) {
		rc = place_in_groups(p, tokens, count, micro_batches, error);
		if (rc == 0)
			load_groups(p, tokens, count, slots);
	}
	*placement = (struct wlb_placement){.places = p->places, .loads = p->loads, .in_groups = in_groups};
	return rc;
}
