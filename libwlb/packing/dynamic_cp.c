/*
 * Assigns documents to ranks with dynamic context parallelism: every document to as many ranks as it needs, 1, 2, 4 ...
 * or all.
 *
 * Groups of 2^k ranks lie at multiples of 2^k, and larger groups are assigned first. All ranks of a group therefore
 * have the same load when its documents are assigned, no rank waits inside a group, and two groups that share ranks run
 * in the same order on all of them.
 */
#include "libwlb/packing/dynamic_cp.h"

#include "libwlb/packing/assign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A document's part on one rank is at most this share of a rank's mean work, halved until the ranks are equal. */
enum { HALVINGS_MAX = 4, DOES_NOT_FIT = 1 };
static const double equal_enough = 1.004;

/* Of a rank's mean work, how much of the exchange of keys is beside products, and is not waited for. */
static const double hidden_share = 0.05;

/* Documents of equal work, as many as ranks, have the mean work but for the rounding of its sum. */
static const double rounding = 1.0 + 1e-9;

/* Where work is predicted seconds, attention's may be wrong by about this share, beside those of all else, which are
 * proportional to tokens: ranks that have equal tokens too are equal nevertheless. */
static const double wrong_share = 0.25;

/* Unequal tokens, whatever they are, count less than work that is so far above the mean. */
static const double most_of_tokens = 0.01;

struct dynamic_cp {
	struct wlb_assignment assignment; /* its bins are the slots, one for each rank of each micro-batch */
	struct wlb_bins groups;
	struct wlb_place *places; /* of the current attempt */
	size_t count;
	int32_t ranks;
	int32_t micro_batches;
	int64_t longest_part; /* tokens of a document on one rank */
	int exchange;         /* 1: documents on one rank are exchanged until the ranks are equal */
	double tokens_weight; /* of unequal tokens, by unequal work */
	int64_t most_keys;    /* that a rank exchanges in a micro-batch; 0: any number */
	int64_t *keys;        /* of each slot; NULL where any number is allowed */
	double key_work;      /* as that of struct wlb_rank_space */
	double *exchanged;    /* of each slot, work; NULL where key_work is 0 */
};

static void dynamic_cp_free(struct dynamic_cp *s)
{
	wlb_assignment_free(&s->assignment);
	wlb_bins_free(&s->groups);
	free(s->places);
	free(s->keys);
	free(s->exchanged);
}

static int dynamic_cp_init(struct dynamic_cp *s, size_t count, int32_t ranks, int32_t micro_batches, int64_t max_tokens)
{
	*s = (struct dynamic_cp){.count = count,
	                         .ranks = ranks,
	                         .micro_batches = micro_batches,
	                         .longest_part = max_tokens,
	                         .exchange = 1};
	s->places = calloc(count + 1, sizeof(*s->places));
	if (s->places != NULL && wlb_assignment_init(&s->assignment, ranks * micro_batches, max_tokens) == 0 &&
	    wlb_assignment_reserve(&s->assignment, count + 1) == 0 &&
	    wlb_bins_init(&s->groups, ranks * micro_batches, max_tokens) == 0)
		return 0;
	dynamic_cp_free(s);
	return -1;
}

static int64_t part_of(int64_t tokens, int32_t ranks)
{
	return tokens / ranks + (tokens % ranks > 0);
}

int32_t wlb_dynamic_cp_smaller(int32_t ranks)
{
	int32_t power = 1;
	while (2 * power < ranks)
		power *= 2;
	return power;
}

static int32_t group_for(const struct dynamic_cp *s, const struct wlb_assigned_span *assigned, double most_work)
{
	int32_t group = s->ranks;
	while (group > 1) {
		int32_t smaller = wlb_dynamic_cp_smaller(group);
		if (assigned->work / smaller > most_work || part_of(assigned->span.tokens, smaller) > s->longest_part)
			break;
		group = smaller;
	}
	return group;
}

/* Adds a document's parts to the slots of its ranks; the first ranks have the remainder of its tokens. */
static void add_to_slots(struct dynamic_cp *s, const struct wlb_assigned_span *assigned, const struct wlb_place *place)
{
	for (int32_t r = 0; r < place->ranks; r++) {
		int64_t tokens = assigned->span.tokens / place->ranks + (r < assigned->span.tokens % place->ranks);
		wlb_bins_add(&s->assignment.bins, place->micro_batch * s->ranks + place->first_rank + r, tokens,
		             assigned->work / place->ranks);
	}
}

/* Makes a bin of each group of `group` ranks; its work and its tokens are the most that one of its ranks has. */
static void make_group_bins(struct dynamic_cp *s, int32_t group)
{
	int32_t batch_groups = s->ranks / group; /* in a micro-batch */
	s->groups.count = batch_groups * s->micro_batches;
	wlb_bins_reset(&s->groups);
	for (int32_t g = 0; g < s->groups.count; g++) {
		const struct wlb_load *slots =
			&s->assignment.bins.loads[g / batch_groups * s->ranks + g % batch_groups * group];
		for (int32_t r = 0; r < group; r++) {
			struct wlb_load *load = &s->groups.loads[g];
			load->work = slots[r].work > load->work ? slots[r].work : load->work;
			load->tokens = slots[r].tokens > load->tokens ? slots[r].tokens : load->tokens;
		}
	}
	wlb_bins_heapify(&s->groups);
}

/* Adds the documents that need groups of this size, in order; returns 1 where there are any. */
static int select_documents(struct dynamic_cp *s, int32_t group)
{
	s->assignment.ordered = 0;
	for (size_t i = 0; i < s->count; i++)
		if (s->places[i].ranks == group)
			wlb_assignment_add(&s->assignment, i);
	wlb_assignment_sort(&s->assignment);
	return s->assignment.ordered > 0;
}

/* Assigns the documents to groups of this size, in order. Returns -1 where one does not fit. */
static int assign_groups(struct dynamic_cp *s, int32_t group)
{
	int32_t batch_groups = s->ranks / group; /* in a micro-batch */
	make_group_bins(s, group);
	for (size_t r = 0; r < s->assignment.ordered; r++) {
		size_t i = s->assignment.order[r].span;
		const struct wlb_assigned_span *assigned = &s->assignment.spans[i];
		int32_t g = wlb_bins_put(&s->groups, part_of(assigned->span.tokens, group), assigned->work / group);
		if (g < 0)
			return -1;
		s->places[i].micro_batch = g / batch_groups;
		s->places[i].first_rank = g % batch_groups * group;
		add_to_slots(s, assigned, &s->places[i]);
	}
	return 0;
}

/* Assigns the documents that run on one rank. Returns -1 where one does not fit. */
static int assign_singles(struct dynamic_cp *s)
{
	struct wlb_assignment *assignment = &s->assignment;
	wlb_bins_heapify(&assignment->bins);
	wlb_assignment_place(assignment, INT64_MAX);
	for (size_t r = 0; r < assignment->ordered; r++)
		if (assignment->spans[assignment->order[r].span].bin < 0)
			return -1;
	if (s->exchange)
		wlb_assignment_refine(assignment);
	for (size_t r = 0; r < assignment->ordered; r++) {
		size_t i = assignment->order[r].span;
		s->places[i].micro_batch = assignment->spans[i].bin / s->ranks;
		s->places[i].first_rank = assignment->spans[i].bin % s->ranks;
	}
	return 0;
}

/* Returns the work of the fullest rank, or what it would be if it were as far above the mean as the weighted tokens of
 * the rank with the most are. */
static double fullest_of(const struct dynamic_cp *s)
{
	const struct wlb_bins *bins = &s->assignment.bins;
	double fullest = 0.0, work = 0.0, most = 0.0, tokens = 0.0;
	for (int32_t b = 0; b < bins->count; b++) {
		fullest = fmax(fullest, bins->loads[b].work);
		most = fmax(most, (double)bins->loads[b].tokens);
		work += bins->loads[b].work / bins->count;
		tokens += (double)bins->loads[b].tokens / bins->count;
	}
	if (s->tokens_weight == 0.0 || tokens == 0.0)
		return fullest;
	double unequal = s->tokens_weight * (most / tokens - 1.0);
	return fmax(fullest, work * (1.0 + most_of_tokens * unequal / (most_of_tokens + unequal)));
}

/* Assigns all documents, with no part of a document on a rank above `most_work` where there are enough ranks. Returns
 * what fullest_of does, or -1 where a document does not fit. */
static double assign_all(struct dynamic_cp *s, double most_work)
{
	wlb_bins_reset(&s->assignment.bins);
	for (size_t i = 0; i < s->count; i++) {
		s->assignment.spans[i].bin = -1;
		s->places[i].ranks = group_for(s, &s->assignment.spans[i], most_work);
	}
	for (int32_t group = s->ranks; group > 1; group = wlb_dynamic_cp_smaller(group))
		if (select_documents(s, group) && assign_groups(s, group) < 0)
			return -1.0;
	select_documents(s, 1);
	if (assign_singles(s) < 0)
		return -1.0;
	return fullest_of(s);
}

/* Returns whether a rank would exchange more keys than allowed. Of each document each of its ranks exchanges as many as
 * its first one has, which has the remainder. */
static int exceeds_keys(const struct dynamic_cp *s)
{
	if (s->keys == NULL)
		return 0;
	memset(s->keys, 0, (size_t)s->assignment.bins.count * sizeof(*s->keys));
	for (size_t i = 0; i < s->count; i++) {
		const struct wlb_place *place = &s->places[i];
		int64_t *keys = s->keys + place->micro_batch * s->ranks + place->first_rank;
		int64_t part = part_of(s->assignment.spans[i].span.tokens, place->ranks);
		for (int32_t r = 0; r < place->ranks; r++) {
			if (part > (s->most_keys - keys[r]) / place->ranks)
				return 1;
			keys[r] += part * place->ranks;
		}
	}
	return 0;
}

/* Returns the most work that a rank has with the keys of documents on several ranks. */
static double most_exchanged(const struct dynamic_cp *s)
{
	double most = 0.0;
	if (s->exchanged == NULL)
		return 0.0;
	memset(s->exchanged, 0, (size_t)s->assignment.bins.count * sizeof(*s->exchanged));
	for (size_t i = 0; i < s->count; i++) {
		const struct wlb_place *place = &s->places[i];
		double *exchanged = s->exchanged + place->micro_batch * s->ranks + place->first_rank;
		double others = (double)s->assignment.spans[i].span.tokens * (place->ranks - 1) / place->ranks;
		for (int32_t r = 0; r < place->ranks; r++) {
			exchanged[r] += s->key_work * others;
			most = fmax(most, exchanged[r]);
		}
	}
	return most;
}

/* Tries larger groups until the work of the ranks is equal; keeps the assignment with the least work on any rank, with
 * what is waited for keys. Returns 0 or DOES_NOT_FIT. */
static int search(struct dynamic_cp *s, struct wlb_place *places, struct wlb_load *loads, struct wlb_error *error)
{
	double mean = 0.0, best = -1.0, part = 1.0;
	for (size_t i = 0; i < s->count; i++)
		mean += s->assignment.spans[i].work / s->assignment.bins.count;
	for (int halvings = 0; halvings <= HALVINGS_MAX; halvings++, part /= 2.0) {
		double fullest = assign_all(s, mean * part * rounding);
		if (fullest < 0.0 || exceeds_keys(s))
			continue;
		fullest += fmax(0.0, most_exchanged(s) - hidden_share * mean);
		if (best >= 0.0 && fullest >= best)
			continue;
		best = fullest;
		memcpy(places, s->places, s->count * sizeof(*places));
		memcpy(loads, s->assignment.bins.loads, (size_t)s->assignment.bins.count * sizeof(*loads));
		if (best <= mean * equal_enough)
			break;
	}
	if (best >= 0.0)
		return 0;
	wlb_fail(error,
	         "%zu documents do not fit on %d ranks of %lld tokens in %d micro-batches: raise the number of "
	         "micro-batches",
	         s->count, s->ranks, (long long)s->assignment.bins.max_tokens, s->micro_batches);
	return DOES_NOT_FIT;
}

static int check_ranks(int32_t ranks, int32_t micro_batches, struct wlb_error *error)
{
	if (ranks < 1 || micro_batches < 1 || ranks > (1 << 20) / micro_batches)
		return wlb_fail(error,
		                "%d ranks in %d micro-batches: both must be at least 1, their product at most %d",
		                ranks, micro_batches, 1 << 20);
	return 0;
}

static int check_tokens(const int64_t *tokens, size_t count, struct wlb_error *error)
{
	for (size_t i = 0; i < count; i++)
		if (tokens[i] < 0)
			return wlb_fail(error, "document %zu has %lld tokens: it must not be negative", i,
			                (long long)tokens[i]);
	return 0;
}

static int weigh(struct dynamic_cp *s, double (*work)(const void *context, int64_t tokens), const void *work_context,
                 const int64_t *tokens, struct wlb_error *error)
{
	for (size_t i = 0; i < s->count; i++) {
		struct wlb_assigned_span *assigned = &s->assignment.spans[i];
		*assigned = (struct wlb_assigned_span){.span.tokens = tokens[i], .work = work(work_context, tokens[i])};
		if (wlb_work_check(assigned->work, tokens[i], "document", (int64_t)i, error) < 0)
			return -1;
	}
	return 0;
}

/* Allocates what the space needs. */
static int set_space(struct dynamic_cp *s, const struct wlb_rank_space *space, struct wlb_error *error)
{
	size_t slots = (size_t)s->assignment.bins.count;
	if (!(space->key_work >= 0.0 && isfinite(space->key_work)))
		return wlb_fail(error, "key_work is %g: it must be finite and at least 0", space->key_work);
	s->most_keys = space->key_ranks * space->rank_tokens;
	s->key_work = space->key_work;
	if (space->key_ranks > 0)
		s->keys = calloc(slots, sizeof(*s->keys));
	if (space->key_work > 0.0)
		s->exchanged = calloc(slots, sizeof(*s->exchanged));
	if ((space->key_ranks > 0 && s->keys == NULL) || (space->key_work > 0.0 && s->exchanged == NULL))
		return wlb_fail(error, "out of memory while assigning %zu documents to ranks", s->count);
	return 0;
}

/* Without key_ranks any number of keys may be exchanged. */
static int assign_by_work(double (*work)(const void *context, int64_t tokens), const void *work_context,
                          double tokens_weight, const struct wlb_rank_space *space, const int64_t *tokens, size_t count,
                          int32_t micro_batches, struct wlb_place *places, struct wlb_load *loads,
                          struct wlb_error *error)
{
	struct dynamic_cp dynamic;
	if (check_ranks(space->ranks, micro_batches, error) < 0 ||
	    wlb_max_tokens_check(space->rank_tokens, error) < 0 || check_tokens(tokens, count, error) < 0)
		return -1;
	if (dynamic_cp_init(&dynamic, count, space->ranks, micro_batches, space->rank_tokens) < 0)
		return wlb_fail(error, "out of memory while assigning %zu documents to ranks", count);
	dynamic.tokens_weight = tokens_weight;
	int rc = set_space(&dynamic, space, error);
	if (rc == 0)
		rc = weigh(&dynamic, work, work_context, tokens, error);
	if (rc == 0)
		rc = search(&dynamic, places, loads, error);
	dynamic_cp_free(&dynamic);
	return rc;
}

int wlb_dynamic_cp_place(double (*work)(const void *context, int64_t tokens), const void *work_context,
                         const struct wlb_rank_space *space, const int64_t *tokens, size_t count, int32_t micro_batches,
                         struct wlb_place *places, struct wlb_load *loads, struct wlb_error *error)
{
	return assign_by_work(work, work_context, wrong_share, space, tokens, count, micro_batches, places, loads,
	                      error);
}

int wlb_dynamic_cp(const struct wlb_model *model, const int64_t *tokens, size_t count, int32_t ranks,
                   int32_t micro_batches, int64_t max_tokens, struct wlb_place *places, struct wlb_load *loads,
                   struct wlb_error *error)
{
	const struct wlb_rank_space space = {.ranks = ranks, .rank_tokens = max_tokens};
	int rc = assign_by_work(wlb_assignment_flops, model, 0.0, &space, tokens, count, micro_batches, places, loads,
	                        error);
	return rc == 0 ? 0 : -1;
}

/* Returns -1 where a document has more than longest_part tokens on each of all ranks. */
static int check_parts(const int64_t *tokens, size_t count, int32_t ranks, int64_t longest_part,
                       struct wlb_error *error)
{
	if (longest_part < 1 || wlb_max_tokens_check(longest_part, NULL) < 0)
		return wlb_fail(error, "longest_part is %lld: it must be between 1 and 2^60", (long long)longest_part);
	for (size_t i = 0; i < count; i++)
		if (part_of(tokens[i], ranks) > longest_part)
			return wlb_fail(error, "document %zu of %lld tokens has more than %lld on each of %d ranks", i,
			                (long long)tokens[i], (long long)longest_part, ranks);
	return 0;
}

int wlb_hybrid_cp(const int64_t *tokens, size_t count, int32_t ranks, int32_t micro_batches, int64_t longest_part,
                  struct wlb_place *places, struct wlb_load *loads, struct wlb_error *error)
{
	static const int64_t any_tokens = (int64_t)1 << 60;
	struct dynamic_cp hybrid;
	if (check_ranks(ranks, micro_batches, error) < 0 || check_tokens(tokens, count, error) < 0 ||
	    check_parts(tokens, count, ranks, longest_part, error) < 0)
		return -1;
	if (dynamic_cp_init(&hybrid, count, ranks, micro_batches, any_tokens) < 0)
		return wlb_fail(error, "out of memory while assigning %zu documents to ranks", count);
	hybrid.longest_part = longest_part;
	hybrid.exchange = 0;
	for (size_t i = 0; i < count; i++)
		hybrid.assignment.spans[i] = (struct wlb_assigned_span){.span.tokens = tokens[i],
		                                                        .work = (double)tokens[i] * (double)tokens[i]};
	int rc = assign_all(&hybrid, INFINITY) < 0.0
	                 ? wlb_fail(error, "%zu documents have more than 2^60 tokens on a rank", count)
	                 : 0;
	for (size_t i = 0; rc == 0 && i < count; i++)
		places[i] = hybrid.places[i];
	for (int32_t b = 0; rc == 0 && b < hybrid.assignment.bins.count; b++)
		loads[b] = hybrid.assignment.bins.loads[b];
	dynamic_cp_free(&hybrid);
	return rc;
}
