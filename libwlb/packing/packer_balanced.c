/*
 * Chooses the documents of a step and assigns them to micro-batches.
 *
 * Work grows with the square of a document's length, so only micro-batches that also have long documents can equal a
 * micro-batch with a long document: long documents wait until enough of them are held. Waiting has a price. A candidate
 * release holds back the heaviest long documents, takes all other long ones, and adds short ones, oldest first, up to
 * some level of work. The cost of a candidate is the imbalance of its micro-batches plus the price of the documents
 * that it leaves; the cheapest candidate is released. The price is adjusted to the target of the mean wait.
 */
#include "libwlb/packing/packer_spans.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A document longer than seq_length / LONG_PART is long. Long documents are few, and are evaluated one by one. */
enum { LONG_PART = 8, FULL_SEARCH = 256, LEAST_STEP_PART = 4 };

/* The weight of a document that has waited n steps is 1 + n times this, so that old documents are released before the
 * limit forces it. */
static const double waiting_weight = 0.1;

struct release {
	size_t held;           /* number of the heaviest long documents that are held back */
	double short_tokens;   /* of short documents that are released */
	double missing_tokens; /* tokens short of the least step; compared before the cost */
	double cost;
};

struct release_search {
	size_t longs;
	size_t most_held; /* limit of `held`: the first document that is due is released, and all lighter ones */
	double short_tokens;
	double short_work;
	double flow_tokens; /* of a step, mean */
	double least_tokens;
	struct release best;
};

/* The trial bins with the long documents in them. */
struct trial {
	double waiting_tokens; /* each weighted by how long it has waited */
	double tokens;
	double work;
	double level; /* work of the heaviest bin */
};

static int is_long(const struct wlb_packer *packer, const struct wlb_assigned_span *assigned)
{
	return assigned->span.tokens > packer->options.seq_length / LONG_PART;
}

static int64_t due_step(const struct wlb_packer *packer)
{
	return packer->step - packer->options.max_delay_steps;
}

static double waiting_tokens(const struct wlb_packer *packer, const struct wlb_assigned_span *assigned)
{
	return (double)assigned->span.tokens * (1.0 + waiting_weight * (double)(packer->step - assigned->arrival_step));
}

static void begin_search(struct wlb_packer *packer, struct release_search *search)
{
	struct wlb_assignment *assignment = &packer->assignment;
	double all_tokens = 0.0;
	*search = (struct release_search){.best = {.missing_tokens = DBL_MAX}};
	for (size_t i = 0; i < assignment->count; i++) {
		const struct wlb_assigned_span *assigned = &assignment->spans[i];
		all_tokens += (double)assigned->span.tokens;
		if (is_long(packer, assigned)) {
			wlb_assignment_add(assignment, i);
			continue;
		}
		search->short_tokens += (double)assigned->span.tokens;
		search->short_work += assigned->work;
	}
	wlb_assignment_sort(assignment);
	search->longs = assignment->ordered;
	while (search->most_held < search->longs &&
	       assignment->spans[assignment->order[search->most_held].span].arrival_step > due_step(packer))
		search->most_held++;
	search->flow_tokens = fmax((double)packer->arrived_tokens / (double)(packer->step + 1), 1.0);
	search->least_tokens = fmax((double)packer->batch_tokens / LEAST_STEP_PART, 1.0);
	if (packer->batch_tokens == 0)
		search->least_tokens = all_tokens;
}

static void evaluate_release(const struct wlb_packer *packer, struct release_search *search, const struct trial *trial,
                             size_t held, double level, double short_work)
{
	double released_tokens =
		search->short_work > 0.0 ? search->short_tokens * (short_work / search->short_work) : 0.0;
	double work = trial->work + short_work;
	double waiting = trial->waiting_tokens + search->short_tokens - released_tokens;
	double imbalance = work > 0.0 ? level * packer->trial.count / work : 1.0;
	struct release release = {
		.held = held,
		.short_tokens = released_tokens,
		.cost = imbalance - 1.0 + packer->price * waiting / search->flow_tokens,
		.missing_tokens = fmax(search->least_tokens - trial->tokens - released_tokens, 0.0),
	};
	if (release.missing_tokens < search->best.missing_tokens ||
	    (release.missing_tokens == search->best.missing_tokens && release.cost < search->best.cost))
		search->best = release;
}

static int less_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Evaluates levels to which short documents, treated as divisible, fill the trial bins. Up to the work of the heaviest
 * bin the balance does not get worse; above it one bin after another has no space left and stays below the level, and
 * each such level is a candidate release. */
static void fill_bins(const struct wlb_packer *packer, struct release_search *search, const struct trial *trial,
                      size_t held)
{
	const struct wlb_bins *bins = &packer->trial;
	double density = search->short_tokens > 0.0 ? search->short_work / search->short_tokens : 0.0;
	double level = trial->level, filled = 0.0;
	size_t open = 0;
	for (int32_t b = 0; b < bins->count; b++) {
		double work = bins->loads[b].work;
		double full_at = work + density * (double)(bins->max_tokens - bins->loads[b].tokens);
		filled += fmin(full_at, level) - work;
		if (full_at > level)
			packer->full_at[open++] = full_at;
	}
	evaluate_release(packer, search, trial, held, level, fmin(filled, search->short_work));
	qsort(packer->full_at, open, sizeof(*packer->full_at), less_first);
	for (size_t full = 0; full < open && filled < search->short_work; full++) {
		double still_open = (double)(open - full);
		double rise = fmin(packer->full_at[full] - level, (search->short_work - filled) / still_open);
		level += rise;
		filled += rise * still_open;
		evaluate_release(packer, search, trial, held, level, fmin(filled, search->short_work));
	}
}

/* Evaluates the releases that hold back the `held` heaviest documents; returns 0 where no such release can be the
 * cheapest. */
static int evaluate(struct wlb_packer *packer, struct release_search *search, size_t held)
{
	const struct wlb_assignment *assignment = &packer->assignment;
	struct trial trial = {0};
	for (size_t r = 0; r < held; r++)
		trial.waiting_tokens += waiting_tokens(packer, &assignment->spans[assignment->order[r].span]);
	if (search->best.missing_tokens == 0.0 &&
	    packer->price * trial.waiting_tokens / search->flow_tokens >= search->best.cost)
		return 0;
	wlb_bins_reset(&packer->trial);
	for (size_t r = held; r < search->longs; r++) {
		const struct wlb_assigned_span *assigned = &assignment->spans[assignment->order[r].span];
		int32_t bin = wlb_bins_put(&packer->trial, assigned->span.tokens, assigned->work);
		if (bin < 0) {
			trial.waiting_tokens += waiting_tokens(packer, assigned);
			continue;
		}
		trial.tokens += (double)assigned->span.tokens;
		trial.work += assigned->work;
		trial.level = fmax(trial.level, packer->trial.loads[bin].work);
	}
	fill_bins(packer, search, &trial, held);
	return 1;
}

/* Evaluates all releases where there are few, else every stride-th and then those around the best. */
static void choose(struct wlb_packer *packer, struct release_search *search)
{
	size_t stride = 1 + search->longs / FULL_SEARCH;
	for (size_t held = 0; held <= search->most_held && evaluate(packer, search, held);)
		held += stride;
	if (stride == 1)
		return;
	size_t around = search->best.held;
	for (size_t held = around >= stride ? around - stride + 1 : 0; held < around + stride; held++)
		if (held <= search->most_held)
			evaluate(packer, search, held);
}

/* Adds the released documents in order: the long ones are already in order, the short ones follow, oldest first. */
static void release(struct wlb_packer *packer, const struct release *best)
{
	struct wlb_assignment *assignment = &packer->assignment;
	double tokens = 0.0;
	assignment->ordered -= best->held;
	memmove(assignment->order, assignment->order + best->held, assignment->ordered * sizeof(*assignment->order));
	for (size_t i = 0; i < assignment->count; i++) {
		const struct wlb_assigned_span *assigned = &assignment->spans[i];
		if (is_long(packer, assigned) ||
		    (tokens >= best->short_tokens && assigned->arrival_step > due_step(packer)))
			continue;
		tokens += (double)assigned->span.tokens;
		wlb_assignment_add(assignment, i);
	}
	wlb_assignment_sort(assignment);
}

void wlb_packer_balanced(struct wlb_packer *packer)
{
	struct release_search search;
	begin_search(packer, &search);
	choose(packer, &search);
	release(packer, &search.best);
	wlb_assignment_place(&packer->assignment, due_step(packer));
	wlb_packer_cut_rest(packer, due_step(packer));
	wlb_assignment_place(&packer->assignment, INT64_MAX);
	wlb_assignment_refine(&packer->assignment);
}
