#include "worker/load/assign.h"

#include <stdlib.h>
#include <string.h>

#include "libwlb/capacity.h"

int wlb_assigner_init(struct wlb_assigner *a, const struct wlb_loader_options *options,
                      const struct wlb_document_time *time, struct wlb_error *error)
{
	size_t bins = (size_t)wlb_loader_bins(options), dp = (size_t)options->layout.dp;
	*a = (struct wlb_assigner){
		.options = *options,
		.time = time,
		.balancer = wlb_balancer_new(wlb_document_s, time, error),
		.packed_tokens = wlb_loader_packed_tokens(options),
		.first = calloc((size_t)options->micro_batches + 2, sizeof(*a->first)),
		.replica_of = calloc(bins, sizeof(*a->replica_of)),
		.slot_of = calloc(bins, sizeof(*a->slot_of)),
		.order = calloc(bins, sizeof(*a->order)),
		.replica_s = calloc(dp, sizeof(*a->replica_s)),
		.replica_bins = calloc(dp, sizeof(*a->replica_bins)),
	};
	const struct wlb_rank_space space = {.ranks = wlb_loader_ranks(options),
	                                     .key_ranks = wlb_loader_key_ranks(options),
	                                     .rank_tokens = wlb_loader_rank_tokens(options),
	                                     .key_work = time->layers * time->speeds.key_s};
	int is_dynamic = options->packing == WLB_STRATEGY_DYNAMIC;
	if (is_dynamic && (a->placer = wlb_placer_new(&space, wlb_document_s, time, error)) == NULL) {
		wlb_assigner_free(a);
		return -1;
	}
	if (a->balancer != NULL && a->first != NULL && a->replica_of != NULL && a->slot_of != NULL &&
	    a->order != NULL && a->replica_s != NULL && a->replica_bins != NULL)
		return 0;
	wlb_assigner_free(a);
	return wlb_fail(error, "out of memory while assigning spans to %zu micro-batches", bins);
}

void wlb_assigner_free(struct wlb_assigner *a)
{
	wlb_balancer_free(a->balancer);
	wlb_placer_free(a->placer);
	free(a->places);
	free(a->order_of_places);
	free(a->spans);
	free(a->first);
	free(a->replica_of);
	free(a->slot_of);
	free(a->order);
	free(a->replica_s);
	free(a->replica_bins);
	free(a->tokens);
	free(a->bin_of);
	*a = (struct wlb_assigner){0};
}

static int reserve(struct wlb_assigner *a, size_t count, struct wlb_error *error)
{
	if (wlb_grow((void **)&a->spans, &a->spans_capacity, count, sizeof(*a->spans)) < 0 ||
	    wlb_grow((void **)&a->tokens, &a->tokens_capacity, count, sizeof(*a->tokens)) < 0 ||
	    wlb_grow((void **)&a->bin_of, &a->bin_of_capacity, count, sizeof(*a->bin_of)) < 0)
		return wlb_fail(error, "out of memory for a step of %zu spans", count);
	return 0;
}

/* Keeps the packer's micro-batches; consecutive ones are joined where the layout has fewer. */
static void keep_packed(struct wlb_assigner *a, const struct wlb_step *step)
{
	int32_t joined = (step->micro_batches + a->bins - 1) / a->bins;
	for (size_t i = 0; i < step->count; i++)
		a->bin_of[i] = step->spans[i].micro_batch / joined;
}

static int is_assigned_again(const struct wlb_assigner *a, const struct wlb_step *step)
{
	if (a->options.packing == WLB_STRATEGY_BALANCED)
		return 1;
	return a->options.packing == WLB_STRATEGY_GREEDY && a->bins != step->micro_batches;
}

/* Assigns each span to one of the micro-batches of all replicas. */
static int assign_to_bins(struct wlb_assigner *a, const struct wlb_step *step, struct wlb_error *error)
{
	int rc = 0;
	for (size_t i = 0; i < step->count; i++)
		a->tokens[i] = step->spans[i].span.tokens;
	if (is_assigned_again(a, step))
		rc = wlb_balancer_pack(a->balancer, a->tokens, step->count, a->bins, a->options.max_tokens, a->bin_of,
		                       error);
	else
		keep_packed(a, step);
	/* In rare cases the assignment by length leaves no space for a span: the packer's micro-batches, whose work is
	 * less equal, are used then. */
	if (rc > 0 && a->options.max_tokens >= a->packed_tokens) {
		keep_packed(a, step);
		rc = 0;
	}
	return rc == 0 ? 0 : -1;
}

static int longest_first(const void *a, const void *b)
{
	const struct wlb_bin_order *x = a, *y = b;
	if (x->seconds != y->seconds)
		return x->seconds > y->seconds ? -1 : 1;
	return x->bin < y->bin ? -1 : x->bin > y->bin;
}

static void sort_bins(struct wlb_assigner *a, const struct wlb_step *step)
{
	for (int32_t b = 0; b < a->bins; b++)
		a->order[b] = (struct wlb_bin_order){.bin = b};
	for (size_t i = 0; i < step->count; i++)
		a->order[a->bin_of[i]].seconds += wlb_document_s(a->time, a->tokens[i]);
	qsort(a->order, (size_t)a->bins, sizeof(*a->order), longest_first);
}

/* Returns the replica with the least time among those that can take another micro-batch. */
static int32_t lightest_replica(const struct wlb_assigner *a)
{
	int32_t best = -1;
	for (int32_t r = 0; r < a->options.layout.dp; r++)
		if (a->replica_bins[r] < a->options.micro_batches && (best < 0 || a->replica_s[r] < a->replica_s[best]))
			best = r;
	return best;
}

static void assign_to_replicas_by_time(struct wlb_assigner *a, const struct wlb_step *step)
{
	size_t dp = (size_t)a->options.layout.dp;
	memset(a->replica_s, 0, dp * sizeof(*a->replica_s));
	memset(a->replica_bins, 0, dp * sizeof(*a->replica_bins));
	sort_bins(a, step);
	for (int32_t i = 0; i < a->bins; i++) {
		int32_t replica = lightest_replica(a);
		a->replica_of[a->order[i].bin] = replica;
		a->replica_s[replica] += a->order[i].seconds;
		a->replica_bins[replica]++;
	}
}

/* Assigns each micro-batch to a replica, and numbers the micro-batches of each replica. */
static void assign_to_replicas(struct wlb_assigner *a, const struct wlb_step *step)
{
	if (a->options.packing == WLB_STRATEGY_BALANCED || a->options.packing == WLB_STRATEGY_GREEDY)
		assign_to_replicas_by_time(a, step);
	else
		for (int32_t b = 0; b < a->bins; b++)
			a->replica_of[b] = b % a->options.layout.dp;
	memset(a->replica_bins, 0, (size_t)a->options.layout.dp * sizeof(*a->replica_bins));
	for (int32_t b = 0; b < a->bins; b++)
		a->slot_of[b] = a->replica_bins[a->replica_of[b]]++;
}

/* Sorts this replica's spans by micro-batch. */
static void sort_spans(struct wlb_assigner *a, const struct wlb_step *step)
{
	size_t *first = a->first, count = (size_t)a->options.micro_batches;
	memset(first, 0, (count + 1) * sizeof(*first));
	for (size_t i = 0; i < step->count; i++)
		if (a->replica_of[a->bin_of[i]] == a->options.coords.dp)
			first[a->slot_of[a->bin_of[i]] + 1]++;
	for (size_t m = 0; m < count; m++)
		first[m + 1] += first[m];
	/* Each entry advances to the beginning of the next; then all are moved back by one place. */
	for (size_t i = 0; i < step->count; i++)
		if (a->replica_of[a->bin_of[i]] == a->options.coords.dp)
			a->spans[first[a->slot_of[a->bin_of[i]]]++] = step->spans[i].span;
	memmove(first + 1, first, count * sizeof(*first));
	first[0] = 0;
}

static int in_order_of_places(const void *a, const void *b)
{
	const struct wlb_span_place *x = a, *y = b;
	if (x->place.micro_batch != y->place.micro_batch)
		return x->place.micro_batch < y->place.micro_batch ? -1 : 1;
	if (x->place.ranks != y->place.ranks)
		return x->place.ranks > y->place.ranks ? -1 : 1;
	if (x->place.first_rank != y->place.first_rank)
		return x->place.first_rank < y->place.first_rank ? -1 : 1;
	return x->span < y->span ? -1 : x->span > y->span;
}

/* Sorts the spans of all replicas by micro-batch, then by their places. */
static void sort_places(struct wlb_assigner *a, const struct wlb_step *step, const struct wlb_place *places)
{
	struct wlb_span_place *order = a->order_of_places;
	size_t count = (size_t)a->options.micro_batches;
	for (size_t i = 0; i < step->count; i++)
		order[i] = (struct wlb_span_place){.place = places[i], .span = i};
	qsort(order, step->count, sizeof(*order), in_order_of_places);
	memset(a->first, 0, (count + 1) * sizeof(*a->first));
	for (size_t i = 0; i < step->count; i++) {
		a->spans[i] = step->spans[order[i].span].span;
		a->places[i] = order[i].place;
		a->first[order[i].place.micro_batch + 1]++;
	}
	for (size_t m = 0; m < count; m++)
		a->first[m + 1] += a->first[m];
}

static int assign_places(struct wlb_assigner *a, const struct wlb_step *step, struct wlb_error *error)
{
	struct wlb_placement placement;
	if (wlb_grow((void **)&a->places, &a->places_capacity, step->count, sizeof(*a->places)) < 0 ||
	    wlb_grow((void **)&a->order_of_places, &a->order_of_places_capacity, step->count,
	             sizeof(*a->order_of_places)) < 0)
		return wlb_fail(error, "out of memory for the places of %zu spans", step->count);
	for (size_t i = 0; i < step->count; i++)
		a->tokens[i] = step->spans[i].span.tokens;
	/* Every step that the options allow fits. */
	if (wlb_placer_place(a->placer, a->tokens, step->count, a->bins / a->options.layout.dp, &placement, error) != 0)
		return -1;
	a->in_groups = placement.in_groups;
	sort_places(a, step, placement.places);
	return 0;
}

int wlb_assigner_assign(struct wlb_assigner *a, const struct wlb_step *step, struct wlb_error *error)
{
	a->bins = (int32_t)wlb_loader_step_bins(&a->options, step->micro_batches);
	if (reserve(a, step->count, error) < 0)
		return -1;
	if (a->options.packing == WLB_STRATEGY_DYNAMIC)
		return assign_places(a, step, error);
	if (assign_to_bins(a, step, error) < 0)
		return -1;
	assign_to_replicas(a, step);
	sort_spans(a, step);
	return 0;
}

/* Returns the bin at the place `turn` of the ring of all bins, or the next one there that has tokens. */
static int32_t bin_with_tokens(const struct wlb_assigner *a, const struct wlb_step *step, int64_t turn)
{
	int32_t from = (int32_t)(turn % a->bins), found = -1, nearest = a->bins;
	for (size_t i = 0; i < step->count; i++) {
		int32_t ahead = (a->bin_of[i] - from + a->bins) % a->bins;
		if (step->spans[i].span.tokens > 0 && ahead < nearest) {
			nearest = ahead;
			found = a->bin_of[i];
		}
	}
	return found;
}

/* With dynamic packing no micro-batch is one replica's: as many spans from the place `turn` of the ring of all on as a
 * replica's micro-batch holds. */
static size_t pick_spans(struct wlb_assigner *a, const struct wlb_step *step, int64_t turn, size_t end)
{
	int64_t tokens = 0;
	for (size_t i = 0; i < step->count; i++) {
		const struct wlb_span *span = &step->spans[((size_t)turn + i) % step->count].span;
		tokens += span->tokens;
		if (tokens > a->options.max_tokens)
			break;
		a->spans[end++] = *span;
	}
	return end;
}

static size_t pick_bin(struct wlb_assigner *a, const struct wlb_step *step, int64_t turn, size_t end)
{
	int32_t bin = bin_with_tokens(a, step, turn);
	for (size_t i = 0; i < step->count; i++)
		if (a->bin_of[i] == bin)
			a->spans[end++] = step->spans[i].span;
	return end;
}

int wlb_assigner_pick(struct wlb_assigner *a, const struct wlb_step *step, int64_t turn, struct wlb_error *error)
{
	size_t number = (size_t)a->options.micro_batches, end = a->first[number];
	if (wlb_grow((void **)&a->spans, &a->spans_capacity, end + step->count, sizeof(*a->spans)) < 0)
		return wlb_fail(error, "out of memory for a step of %zu spans", step->count);
	a->first[number + 1] = a->options.packing == WLB_STRATEGY_DYNAMIC ? pick_spans(a, step, turn, end)
	                                                                  : pick_bin(a, step, turn, end);
	return 0;
}
