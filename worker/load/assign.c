#include "worker/load/assign.h"

#include <stdlib.h>
#include <string.h>

#include "libwlb/capacity.h"

int wlb_assigner_init(struct wlb_assigner *d, const struct wlb_loader_options *options,
                      const struct wlb_document_time *time, struct wlb_error *error)
{
	size_t bins = (size_t)wlb_loader_bins(options), dp = (size_t)options->layout.dp;
	*d = (struct wlb_assigner){
		.options = *options,
		.time = time,
		.balancer = wlb_balancer_new(wlb_document_s, time, error),
		.bins = (int32_t)bins,
		.packed_tokens = wlb_loader_packed_tokens(options),
		.first = calloc((size_t)options->micro_batches + 1, sizeof(*d->first)),
		.replica_of = calloc(bins, sizeof(*d->replica_of)),
		.slot_of = calloc(bins, sizeof(*d->slot_of)),
		.ranks = calloc(bins, sizeof(*d->ranks)),
		.replica_s = calloc(dp, sizeof(*d->replica_s)),
		.replica_bins = calloc(dp, sizeof(*d->replica_bins)),
	};
	if (d->balancer != NULL && d->first != NULL && d->replica_of != NULL && d->slot_of != NULL &&
	    d->ranks != NULL && d->replica_s != NULL && d->replica_bins != NULL)
		return 0;
	wlb_assigner_free(d);
	return wlb_fail(error, "out of memory while assigning spans to %zu micro-batches", bins);
}

void wlb_assigner_free(struct wlb_assigner *d)
{
	wlb_balancer_free(d->balancer);
	free(d->spans);
	free(d->first);
	free(d->replica_of);
	free(d->slot_of);
	free(d->ranks);
	free(d->replica_s);
	free(d->replica_bins);
	free(d->tokens);
	free(d->bin_of);
	*d = (struct wlb_assigner){0};
}

static int reserve(struct wlb_assigner *d, size_t count, struct wlb_error *error)
{
	if (wlb_grow((void **)&d->spans, &d->spans_capacity, count, sizeof(*d->spans)) < 0 ||
	    wlb_grow((void **)&d->tokens, &d->tokens_capacity, count, sizeof(*d->tokens)) < 0 ||
	    wlb_grow((void **)&d->bin_of, &d->bin_of_capacity, count, sizeof(*d->bin_of)) < 0)
		return wlb_fail(error, "out of memory for a step of %zu spans", count);
	return 0;
}

/* Keeps the packer's micro-batches; consecutive ones are joined where the layout has fewer. */
static void keep_packed(struct wlb_assigner *d, const struct wlb_step *step)
{
	int32_t joined = (step->micro_batches + d->bins - 1) / d->bins;
	for (size_t i = 0; i < step->count; i++)
		d->bin_of[i] = step->spans[i].micro_batch / joined;
}

static int is_dealt_anew(const struct wlb_assigner *d, const struct wlb_step *step)
{
	if (d->options.packing == WLB_STRATEGY_BALANCED)
		return 1;
	return d->options.packing == WLB_STRATEGY_GREEDY && d->bins != step->micro_batches;
}

static int choose_bins(struct wlb_assigner *d, const struct wlb_step *step, struct wlb_error *error)
{
	int rc = 0;
	for (size_t i = 0; i < step->count; i++)
		d->tokens[i] = step->spans[i].span.tokens;
	if (is_dealt_anew(d, step))
		rc = wlb_balancer_pack(d->balancer, d->tokens, step->count, d->bins, d->options.max_tokens, d->bin_of,
		                       error);
	else
		keep_packed(d, step);
	/* In rare cases longest first leaves no space for a span: then the packer's less equal micro-batches are used.
	 */
	if (rc > 0 && d->options.max_tokens >= d->packed_tokens) {
		keep_packed(d, step);
		rc = 0;
	}
	return rc == 0 ? 0 : -1;
}

static int most_first(const void *a, const void *b)
{
	const struct wlb_bin_order *x = a, *y = b;
	if (x->seconds != y->seconds)
		return x->seconds > y->seconds ? -1 : 1;
	return x->bin < y->bin ? -1 : x->bin > y->bin;
}

static void rank_bins(struct wlb_assigner *d, const struct wlb_step *step)
{
	for (int32_t b = 0; b < d->bins; b++)
		d->ranks[b] = (struct wlb_bin_order){.bin = b};
	for (size_t i = 0; i < step->count; i++)
		d->ranks[d->bin_of[i]].seconds += wlb_document_s(d->time, d->tokens[i]);
	qsort(d->ranks, (size_t)d->bins, sizeof(*d->ranks), most_first);
}

/* The replica with the least time that can take another micro-batch. */
static int32_t lightest_replica(const struct wlb_assigner *d)
{
	int32_t best = -1;
	for (int32_t r = 0; r < d->options.layout.dp; r++)
		if (d->replica_bins[r] < d->options.micro_batches && (best < 0 || d->replica_s[r] < d->replica_s[best]))
			best = r;
	return best;
}

static void choose_replicas_by_time(struct wlb_assigner *d, const struct wlb_step *step)
{
	size_t dp = (size_t)d->options.layout.dp;
	memset(d->replica_s, 0, dp * sizeof(*d->replica_s));
	memset(d->replica_bins, 0, dp * sizeof(*d->replica_bins));
	rank_bins(d, step);
	for (int32_t i = 0; i < d->bins; i++) {
		int32_t replica = lightest_replica(d);
		d->replica_of[d->ranks[i].bin] = replica;
		d->replica_s[replica] += d->ranks[i].seconds;
		d->replica_bins[replica]++;
	}
}

static void choose_replicas(struct wlb_assigner *d, const struct wlb_step *step)
{
	if (d->options.packing == WLB_STRATEGY_BALANCED || d->options.packing == WLB_STRATEGY_GREEDY)
		choose_replicas_by_time(d, step);
	else
		for (int32_t b = 0; b < d->bins; b++)
			d->replica_of[b] = b % d->options.layout.dp;
	memset(d->replica_bins, 0, (size_t)d->options.layout.dp * sizeof(*d->replica_bins));
	for (int32_t b = 0; b < d->bins; b++)
		d->slot_of[b] = d->replica_bins[d->replica_of[b]]++;
}

/* Sorts this replica's spans by micro-batch. */
static void sort_spans(struct wlb_assigner *d, const struct wlb_step *step)
{
	size_t *first = d->first, count = (size_t)d->options.micro_batches;
	memset(first, 0, (count + 1) * sizeof(*first));
	for (size_t i = 0; i < step->count; i++)
		if (d->replica_of[d->bin_of[i]] == d->options.at.dp)
			first[d->slot_of[d->bin_of[i]] + 1]++;
	for (size_t m = 0; m < count; m++)
		first[m + 1] += first[m];
	/* Each entry advances to the beginning of the next; then all are moved back by one place. */
	for (size_t i = 0; i < step->count; i++)
		if (d->replica_of[d->bin_of[i]] == d->options.at.dp)
			d->spans[first[d->slot_of[d->bin_of[i]]]++] = step->spans[i].span;
	memmove(first + 1, first, count * sizeof(*first));
	first[0] = 0;
}

int wlb_assigner_assign(struct wlb_assigner *d, const struct wlb_step *step, struct wlb_error *error)
{
	if (reserve(d, step->count, error) < 0 || choose_bins(d, step, error) < 0)
		return -1;
	choose_replicas(d, step);
	sort_spans(d, step);
	return 0;
}
