/* Packs a stream of global batches: checks a batch, runs the strategy, returns the step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libwlb/packing/packer_spans.h"

static const struct {
	const char *name;
	void (*pack)(struct wlb_packer *packer);
} strategies[] = {
	[WLB_STRATEGY_BALANCED] = {"balanced", wlb_packer_balanced},
	[WLB_STRATEGY_GREEDY] = {"greedy", wlb_packer_greedy},
	[WLB_STRATEGY_FIXED] = {"fixed", wlb_packer_fixed},
	[WLB_STRATEGY_PLAIN] = {"plain", wlb_packer_plain},
	[WLB_STRATEGY_DYNAMIC] = {"dynamic", wlb_packer_dynamic},
};
enum { STRATEGIES = sizeof(strategies) / sizeof(strategies[0]) };

/* The initial price of waiting. */
static const double first_price = 0.2;

static const int64_t any_tokens = (int64_t)1 << 60;

const char *wlb_strategy_name(enum wlb_strategy strategy)
{
	return (unsigned)strategy < STRATEGIES ? strategies[strategy].name : "unknown";
}

int wlb_strategy_parse(const char *text, enum wlb_strategy *strategy, struct wlb_error *error)
{
	for (int i = 0; i < STRATEGIES; i++)
		if (strcmp(text, strategies[i].name) == 0) {
			*strategy = (enum wlb_strategy)i;
			return 0;
		}
	return wlb_fail(error, "strategy \"%s\" is unknown: use balanced, greedy, fixed, plain or dynamic", text);
}

void wlb_packer_options_init(struct wlb_packer_options *options, int64_t seq_length, int32_t micro_batches)
{
	*options = (struct wlb_packer_options){
		.strategy = WLB_STRATEGY_BALANCED,
		.seq_length = seq_length,
		.micro_batches = micro_batches,
		.max_length_ratio = 1.25,
		.max_delay_steps = 32,
		.target_delay_steps = 0.45,
	};
}

static int check_options(const struct wlb_packer_options *o, struct wlb_error *error)
{
	if ((unsigned)o->strategy >= STRATEGIES)
		return wlb_fail(error, "strategy %d is unknown: use one of enum wlb_strategy", (int)o->strategy);
	if (o->seq_length < 1 || o->seq_length > 1 << 30)
		return wlb_fail(error, "seq_length is %lld: it must be between 1 and %d", (long long)o->seq_length,
		                1 << 30);
	if (o->micro_batches < 1 || o->micro_batches > 1 << 20)
		return wlb_fail(error, "%d micro-batches: it must be between 1 and %d", o->micro_batches, 1 << 20);
	if (!(o->max_length_ratio >= 1.0 && o->max_length_ratio <= 64.0))
		return wlb_fail(error, "max_length_ratio is %g: it must be between 1 and 64", o->max_length_ratio);
	if (o->max_delay_steps < 0 || o->max_delay_steps > 1 << 20)
		return wlb_fail(error, "max_delay_steps is %d: it must be between 0 and %d", o->max_delay_steps,
		                1 << 20);
	if (!(o->target_delay_steps > 0.0 && isfinite(o->target_delay_steps)))
		return wlb_fail(error, "target_delay_steps is %g: it must be a finite number above 0",
		                o->target_delay_steps);
	return 0;
}

/* plain and fixed have micro-batches of equal length; balanced and greedy may make them longer than the window. Those
 * of dynamic have no limit: wlb_dynamic_cp puts the documents on ranks. */
static int64_t max_tokens_of(const struct wlb_packer_options *o)
{
	if (o->strategy == WLB_STRATEGY_PLAIN || o->strategy == WLB_STRATEGY_FIXED)
		return o->seq_length;
	if (o->strategy == WLB_STRATEGY_DYNAMIC)
		return any_tokens;
	return (int64_t)((double)o->seq_length * o->max_length_ratio);
}

struct wlb_packer *wlb_packer_new(const struct wlb_model *model, const struct wlb_packer_options *options,
                                  struct wlb_error *error)
{
	if (check_options(options, error) < 0)
		return NULL;
	if (options->work == NULL && model == NULL) {
		wlb_fail(error, "no model and no work function: the packer needs one of them to weigh documents");
		return NULL;
	}
	if (options->work == NULL && wlb_model_check(model, error) < 0)
		return NULL;
	struct wlb_packer *packer = calloc(1, sizeof(*packer));
	if (packer == NULL) {
		wlb_fail(error, "out of memory while making a packer");
		return NULL;
	}
	size_t bins = (size_t)options->micro_batches;
	packer->options = *options;
	if (model != NULL)
		packer->model = *model;
	packer->price = first_price;
	packer->full_at = calloc(bins, sizeof(*packer->full_at));
	packer->first_of = calloc(bins + 1, sizeof(*packer->first_of));
	if (packer->full_at == NULL || packer->first_of == NULL ||
	    wlb_assignment_init(&packer->assignment, options->micro_batches, max_tokens_of(options)) < 0 ||
	    wlb_bins_init(&packer->trial, options->micro_batches, max_tokens_of(options)) < 0) {
		wlb_packer_free(packer);
		wlb_fail(error, "out of memory while making a packer of %d micro-batches", options->micro_batches);
		return NULL;
	}
	return packer;
}

void wlb_packer_free(struct wlb_packer *packer)
{
	if (packer == NULL)
		return;
	wlb_assignment_free(&packer->assignment);
	wlb_bins_free(&packer->trial);
	free(packer->full_at);
	free(packer->first_of);
	free(packer->packed);
	free(packer->held);
	free(packer);
}

void wlb_packer_set_micro_batches(struct wlb_packer *packer, int32_t micro_batches)
{
	packer->assignment.bins.count = micro_batches;
	packer->trial.count = micro_batches;
}

/* Checks the batch; *spans receives the number of its spans after they are cut at the window. plain cuts them where a
 * micro-batch is full and so makes no more. */
static int check_batch(const struct wlb_packer *packer, const struct wlb_span *batch, size_t count, int64_t *tokens,
                       size_t *spans, struct wlb_error *error)
{
	int64_t window = packer->options.seq_length;
	int64_t limit = window * packer->assignment.bins.count;
	*tokens = 0;
	*spans = 0;
	for (size_t i = 0; i < count; i++) {
		const struct wlb_span *span = &batch[i];
		if (span->tokens < 0 || span->start < 0 || span->start > INT64_MAX - span->tokens)
			return wlb_fail(error,
			                "document %lld has tokens %lld from %lld on: neither may be negative, "
			                "nor their sum exceed 2^63 - 1",
			                (long long)span->document, (long long)span->tokens, (long long)span->start);
		if (span->tokens > limit - *tokens)
			return wlb_fail(error,
			                "document %lld of %lld tokens makes the batch longer than %d micro-batches of "
			                "%lld tokens: give its rest to the next batch",
			                (long long)span->document, (long long)span->tokens,
			                packer->assignment.bins.count, (long long)window);
		*tokens += span->tokens;
		*spans += (size_t)((span->tokens + window - 1) / window);
	}
	return 0;
}

/* Documents longer than the window are cut at its multiples, but for plain, which concatenates whole documents. */
static void add_batch(struct wlb_packer *packer, const struct wlb_span *batch, size_t count)
{
	struct wlb_assignment *assignment = &packer->assignment;
	int64_t most = packer->options.strategy == WLB_STRATEGY_PLAIN ? INT64_MAX : packer->options.seq_length;
	for (size_t i = 0; i < count; i++) {
		struct wlb_span left = batch[i];
		int is_part = left.tokens > packer->options.seq_length;
		while (left.tokens > 0) {
			struct wlb_assigned_span *assigned = &assignment->spans[assignment->count++];
			*assigned = (struct wlb_assigned_span){
				.span = left, .arrival_step = packer->step, .bin = -1, .is_part = is_part};
			if (left.tokens > most)
				assigned->span.tokens = most;
			wlb_packer_weigh(packer, assigned);
			left.start += assigned->span.tokens;
			left.tokens -= assigned->span.tokens;
		}
	}
}

/* Writes the spans that have a bin to the step, by micro-batch, and moves those that wait to the front of the array. */
static void write_step(struct wlb_packer *packer)
{
	struct wlb_assignment *assignment = &packer->assignment;
	size_t bins = (size_t)assignment->bins.count, held = 0, *first = packer->first_of;
	memset(first, 0, (bins + 1) * sizeof(*first));
	for (size_t i = 0; i < assignment->count; i++)
		if (assignment->spans[i].bin >= 0)
			first[assignment->spans[i].bin + 1]++;
	for (size_t b = 0; b < bins; b++)
		first[b + 1] += first[b];
	packer->out.count = first[bins];
	for (size_t i = 0; i < assignment->count; i++) {
		const struct wlb_assigned_span *assigned = &assignment->spans[i];
		if (assigned->bin < 0) {
			assignment->spans[held++] = *assigned;
			continue;
		}
		packer->packed[first[assigned->bin]++] = (struct wlb_packed_span){
			.span = assigned->span,
			.micro_batch = assigned->bin,
			.waited_steps = (int32_t)(packer->step - assigned->arrival_step),
		};
	}
	assignment->count = held;
}

static void sum_step(struct wlb_packer *packer)
{
	const struct wlb_assignment *assignment = &packer->assignment;
	struct wlb_step *out = &packer->out;
	out->index = packer->step;
	out->spans = packer->packed;
	out->loads = assignment->bins.loads;
	out->micro_batches = assignment->bins.count;
	out->cuts = packer->cuts;
	out->tokens = 0;
	out->held_tokens = 0;
	out->held_work = 0.0;
	for (int32_t b = 0; b < assignment->bins.count; b++)
		out->tokens += assignment->bins.loads[b].tokens;
	for (size_t i = 0; i < assignment->count; i++) {
		out->held_tokens += assignment->spans[i].span.tokens;
		out->held_work += assignment->spans[i].work;
	}
}

/* The mean wait of tokens is held / flow steps (Little's law); the price rises where that is above the target. */
static void adjust_price(struct wlb_packer *packer)
{
	static const double damping = 25.0, least = 0.01, most = 10.0;
	if (packer->arrived_tokens == 0)
		return;
	double flow = (double)packer->arrived_tokens / (double)packer->step;
	double off = (double)packer->out.held_tokens / flow - packer->options.target_delay_steps;
	packer->price = fmin(fmax(packer->price * (1.0 + fmin(off, damping) / damping), least), most);
}

/* Assigns the held spans and the batch to micro-batches. Returns -1 where the work of a span is refused; the spans are
 * then those that were held before. */
static int pack_batch(struct wlb_packer *packer, const struct wlb_span *batch, size_t count, struct wlb_error *error)
{
	struct wlb_assignment *assignment = &packer->assignment;
	size_t held = assignment->count;
	memcpy(packer->held, assignment->spans, held * sizeof(*packer->held));
	packer->refused = 0;
	add_batch(packer, batch, count);
	packer->cuts = 0;
	assignment->ordered = 0;
	wlb_bins_reset(&assignment->bins);
	if (!packer->refused)
		strategies[packer->options.strategy].pack(packer);
	if (!packer->refused)
		return 0;
	memcpy(assignment->spans, packer->held, held * sizeof(*packer->held));
	assignment->count = held;
	return wlb_fail(error, "%s", packer->refusal.message);
}

const struct wlb_step *wlb_packer_next(struct wlb_packer *packer, const struct wlb_span *batch, size_t count,
                                       struct wlb_error *error)
{
	int64_t tokens;
	size_t spans;
	if (check_batch(packer, batch, count, &tokens, &spans, error) < 0 ||
	    wlb_packer_reserve(packer, spans, error) < 0)
		return NULL;
	packer->arrived_tokens += tokens;
	packer->batch_tokens = tokens;
	if (pack_batch(packer, batch, count, error) < 0) {
		packer->arrived_tokens -= tokens;
		return NULL;
	}
	write_step(packer);
	sum_step(packer);
	packer->step++;
	adjust_price(packer);
	return &packer->out;
}

double wlb_step_imbalance(const struct wlb_step *step)
{
	double most = 0.0, sum = 0.0;
	for (int32_t b = 0; b < step->micro_batches; b++) {
		most = fmax(most, step->loads[b].work);
		sum += step->loads[b].work;
	}
	if (!isfinite(sum))
		return NAN;
	return sum > 0.0 ? most * step->micro_batches / sum : 1.0;
}
