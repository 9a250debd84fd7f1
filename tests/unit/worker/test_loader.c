/* The loaders of all ranks of a layout together return every token of the step once, in rows that match.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/worker/loads.h"
#include "worker/load/prepare.h"

enum { SEQ_LENGTH = 64, WINDOWS = 8, STEPS = 6 };

static const struct wlb_layout layouts[] = {
	{1, 1, 1, 1}, {2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 1, 3}, {1, 3, 1, 2}, {4, 2, 1, 2}, {3, 4, 2, 1}, {1, 1, 1, 16},
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

/* Odd lengths, the least that trains (2 tokens, a span of 1), windows and what is just above, documents that are cut.
 */
static void open_mixed(struct loads_dataset *d, void **state)
{
	static const int32_t kinds[] = {2, 3, 65, 17, 66, 1, 0, 129, 7, 31, 64, 33, 200, 2, 5, 11};
	int32_t lengths[160];
	for (int i = 0; i < 160; i++)
		lengths[i] = kinds[i % 16] + (i % 16 == 3 ? i : 0);
	loads_open(d, state, lengths, 160);
}

/* Segments of the first half come first, and none is of both. */
static void check_halves(const struct loads_batch *b, const struct wlb_loader_options *o)
{
	int64_t half = b->about.second_half;
	assert_int_equal(half, wlb_second_half(b->about.rows, o->layout.tp, o->halved_rows));
	assert_int_equal(half > 0, o->halved_rows > 0 && o->layout.tp > 1 && b->about.rows >= 2 * o->layout.tp);
	for (int s = 0; s < b->about.segments.count && half > 0; s++) {
		const struct wlb_segment *segment = &b->segments[s];
		int is_first = s < b->about.first_segments;
		assert_true(is_first ? segment->q_start + segment->q_count <= half : segment->q_start >= half);
	}
}

/* One rank's rows: tokens in its segments, padding behind. */
static void check_rows(const struct loads_batch *b, int tp)
{
	int64_t row = 0;
	int max_q = 0, max_k = 0;
	assert_int_equal(b->about.rows % tp, 0);
	for (int s = 0; s < b->about.segments.count; s++) {
		const struct wlb_segment *segment = &b->segments[s];
		assert_int_equal(segment->q_start, row);
		assert_int_equal(segment->k_count, segment->q_offset + segment->q_count);
		assert_true(segment->q_count >= 1 && segment->k_start + segment->k_count <= b->about.tokens);
		for (int i = 0; i < segment->q_count; i++, row++) {
			assert_int_equal(b->positions[row], segment->q_offset + i);
			assert_int_equal(b->ids[row] - b->positions[row], b->ids[segment->q_start] - segment->q_offset);
			assert_int_equal(b->targets[row], b->ids[row] + 1);
		}
		max_q = segment->q_count > max_q ? segment->q_count : max_q;
		max_k = segment->k_count > max_k ? segment->k_count : max_k;
	}
	assert_int_equal(row, b->about.own_rows);
	if (b->about.second_half == 0)
		assert_int_equal(max_q, b->about.segments.max_q);
	assert_true(max_q <= b->about.segments.max_q);
	assert_int_equal(max_k, b->about.segments.max_k);
	for (; row < b->about.rows; row++) {
		assert_int_equal(b->ids[row], 0);
		assert_int_equal(b->targets[row], -1);
		assert_int_equal(b->positions[row], 0);
	}
}

/* What context-parallel ranks gather, brought to document order: the keys and values of a token hold its id. */
static int32_t *gather(const struct loads_group *g, int dp, int micro_batch)
{
	const struct loads_batch *any = loads_group_batch(g, dp, 0, micro_batch);
	int64_t rows = any->about.rows, tokens = any->about.tokens;
	int cp = g->options.layout.cp;
	int32_t *gathered = calloc((size_t)(cp * rows), sizeof(*gathered));
	int32_t *ordered = calloc((size_t)tokens, sizeof(*ordered));
	assert_true(gathered != NULL && ordered != NULL);
	for (int r = 0; r < cp; r++)
		for (int64_t i = 0; i < rows; i++)
			gathered[r * rows + i] = loads_group_batch(g, dp, r, micro_batch)->ids[i];
	for (int64_t t = 0; t < tokens; t++)
		ordered[t] = gathered[cp > 1 ? any->from_ranks[t] : t];
	free(gathered);
	return ordered;
}

/* Every query finds the keys and values of its document at the places its segment names. */
static void check_keys(const struct loads_batch *b, const int32_t *ordered)
{
	for (int s = 0; s < b->about.segments.count; s++) {
		const struct wlb_segment *segment = &b->segments[s];
		int32_t first_id = b->ids[segment->q_start] - segment->q_offset;
		for (int k = 0; k < segment->k_count; k++)
			assert_int_equal(ordered[segment->k_start + k], first_id + k);
	}
}

/* The way of the gradients is the way of keys and values back. */
static void check_way_back(const struct loads_batch *b, const struct wlb_layout *layout)
{
	int64_t entries = 0;
	for (int64_t i = 0; i < loads_exchanged(&b->about, layout); i++) {
		if (b->to_ranks[i] < 0)
			continue;
		assert_int_equal(b->from_ranks[b->to_ranks[i]], i);
		entries++;
	}
	assert_int_equal(entries, b->about.tokens);
}

static void check_micro_batch(const struct loads_group *g, int dp, int micro_batch)
{
	const struct loads_batch *first = loads_group_batch(g, dp, 0, micro_batch);
	int64_t tokens = 0;
	int cp = g->options.layout.cp;
	assert_true(first->about.tokens <= g->options.max_tokens);
	assert_true(first->about.rows <= wlb_loader_max_rows(&g->options));
	if (first->about.tokens == 0) {
		for (int r = 0; r < cp; r++)
			assert_int_equal(loads_group_batch(g, dp, r, micro_batch)->about.rows, 0);
		return;
	}
	int32_t *ordered = gather(g, dp, micro_batch);
	for (int r = 0; r < cp; r++) {
		const struct loads_batch *b = loads_group_batch(g, dp, r, micro_batch);
		assert_int_equal(b->about.tokens, first->about.tokens);
		assert_int_equal(b->about.rows, first->about.rows);
		check_rows(b, g->options.layout.tp);
		check_halves(b, &g->options);
		check_keys(b, ordered);
		if (cp > 1)
			check_way_back(b, &g->options.layout);
		tokens += b->about.own_rows;
	}
	assert_int_equal(tokens, first->about.tokens);
	free(ordered);
}

/* The exchange of a rank with the group; there must be one. */
static const struct wlb_exchange *exchange_with(const struct loads_batch *b, int group)
{
	for (int e = 0; e < b->about.exchange_count; e++)
		if (b->about.exchanges[e].group == group)
			return &b->about.exchanges[e];
	fail_msg("a rank does not exchange keys with group %d, and another one of it does", group);
	return NULL;
}

/* The rows that rank `rank` sees in its exchanges, or its own where there are none: their ids, -1 in padding. */
static int32_t *exchange(const struct loads_group *g, int rank, int micro_batch)
{
	const struct loads_batch *batches = g->batches + micro_batch, *own = &batches[rank * g->options.micro_batches];
	int64_t rows = loads_exchanged(&own->about, &g->options.layout), at = 0;
	int before = 0;
	int32_t *ids = malloc((size_t)(rows + own->about.rows) * sizeof(*ids));
	assert_non_null(ids);
	memset(ids, -1, (size_t)rows * sizeof(*ids));
	memcpy(ids + rows, own->ids, (size_t)own->about.rows * sizeof(*ids));
	for (int e = 0; e < own->about.exchange_count; e++) {
		const struct wlb_exchange *wanted = &own->about.exchanges[e];
		int ranks = loads_group_ranks(wanted->group, &g->options.layout), first = rank - rank % ranks;
		assert_true(e == 0 || ranks < before); /* the widest first */
		before = ranks;
		assert_true(first + ranks <= g->ranks);
		for (int r = first; r < first + ranks; r++, at += wanted->rows) {
			const struct loads_batch *b = &batches[r * g->options.micro_batches];
			const struct wlb_exchange *x = exchange_with(b, wanted->group);
			assert_int_equal(x->rows, wanted->rows);
			assert_true(x->own_rows <= x->rows && x->own_first + x->own_rows <= b->about.rows);
			memcpy(ids + at, b->ids + x->own_first, (size_t)x->own_rows * sizeof(*ids));
		}
	}
	return ids;
}

/* Dynamic packing: each rank finds the keys of its documents, whole, in what their ranks exchange. Returns how many
 * exchanges there are at most. */
static int check_places(const struct loads_group *g, int micro_batch)
{
	int most = 0;
	for (int r = 0; r < g->ranks; r++) {
		const struct loads_batch *b = &g->batches[r * g->options.micro_batches + micro_batch];
		assert_true(b->about.rows <= wlb_loader_max_rows(&g->options));
		if (b->about.tokens == 0) {
			assert_int_equal(b->about.rows, 0);
			continue;
		}
		int64_t reserved = wlb_loader_key_ranks(&g->options) * wlb_loader_max_rows(&g->options);
		int64_t exchanged = loads_exchanged(&b->about, &g->options.layout);
		assert_true(b->about.rows > 0 && b->about.tokens <= reserved && exchanged <= reserved);
		int32_t *ids = exchange(g, r, micro_batch), *ordered = malloc((size_t)b->about.tokens * sizeof(*ids));
		assert_non_null(ordered);
		for (int64_t t = 0; t < b->about.tokens; t++)
			ordered[t] = ids[exchanged > 0 ? b->from_ranks[t] : t];
		check_rows(b, g->options.layout.tp);
		check_keys(b, ordered);
		if (exchanged > 0)
			check_way_back(b, &g->options.layout);
		most = b->about.exchange_count > most ? b->about.exchange_count : most;
		free(ids);
		free(ordered);
	}
	return most;
}

/* How often each id was an input. */
static void count_inputs(const struct loads_group *g, unsigned char *times)
{
	for (int i = 0; i < g->ranks * g->options.micro_batches; i++)
		for (int64_t row = 0; row < g->batches[i].about.own_rows; row++)
			times[g->batches[i].ids[row]]++;
}

static void expect_step(const struct loads_group *g, const struct wlb_step *step)
{
	unsigned char *times = calloc((size_t)g->data->tokens, 1), *wanted = calloc((size_t)g->data->tokens, 1);
	assert_true(times != NULL && wanted != NULL);
	double work = 0.0, wanted_work = 0.0;
	for (size_t i = 0; i < step->count; i++) {
		const struct wlb_span *span = &step->spans[i].span;
		wanted_work += wlb_cost_document(&g->data->model, span->tokens);
		for (int64_t t = 0; t < span->tokens; t++)
			wanted[loads_first_id(g->data, span) + t]++;
	}
	count_inputs(g, times);
	assert_memory_equal(times, wanted, (size_t)g->data->tokens);
	for (int r = 0; r < g->ranks; r++) {
		work += g->steps[r]->work;
		assert_int_equal(g->steps[r]->tokens, step->tokens);
		assert_int_equal(g->steps[r]->documents, step->count);
		assert_int_equal(g->steps[r]->held_tokens, step->held_tokens);
	}
	assert_true(fabs(work - wanted_work) <= 1e-9 * wanted_work);
	free(times);
	free(wanted);
}

/* Returns how many exchanges a micro-batch of dynamic packing has at most. */
static int check_layout(const struct loads_dataset *d, const struct wlb_loader_options *options)
{
	struct loads_group g;
	struct loads_stream stream;
	int dynamic = options->packing == WLB_STRATEGY_DYNAMIC, most = 0;
	loads_group_open(&g, d, options);
	loads_stream_open(&stream, d, options);
	for (int step = 1; step <= STEPS; step++) {
		loads_group_next(&g);
		for (int r = 0; r < g.ranks; r++)
			assert_int_equal(g.steps[r]->step, step);
		expect_step(&g, loads_stream_next(&stream));
		for (int m = 0; m < options->micro_batches; m++) {
			int exchanges = dynamic ? check_places(&g, m) : 0;
			most = exchanges > most ? exchanges : most;
			for (int dp = 0; dp < options->layout.dp && !dynamic; dp++)
				check_micro_batch(&g, dp, m);
		}
	}
	loads_stream_close(&stream);
	loads_group_close(&g);
	return most;
}

static void every_layout_trains_the_packed_steps(void **state)
{
	static const enum wlb_sharding shardings[] = {WLB_SHARDING_SEQUENCE, WLB_SHARDING_DOCUMENT,
	                                              WLB_SHARDING_ADAPTIVE};
	struct loads_dataset d;
	open_mixed(&d, state);
	for (int strategy = WLB_STRATEGY_BALANCED; strategy <= WLB_STRATEGY_PLAIN; strategy++)
		for (int l = 0; l < LAYOUTS; l++)
			for (int windows = 1; windows <= 3; windows++) {
				struct wlb_loader_options o =
					loads_options((enum wlb_strategy)strategy, shardings[(l + windows) % 3],
				                      SEQ_LENGTH, WINDOWS, windows, 0, layouts[l]);
				o.halved_rows = windows == 2;
				check_layout(&d, &o);
			}
	loads_close(&d);
}

/* Of all numbers of ranks, also those that are no power of two. The shares of a rank in a micro-batch are of up to
 * three groups and its own documents. */
static void dynamic_packing_gives_each_rank_the_keys_of_its_documents(void **state)
{
	static const struct wlb_layout dynamic[] = {{1, 1, 1, 1}, {1, 2, 1, 1},  {1, 1, 1, 3}, {2, 2, 1, 2},
	                                            {1, 3, 1, 2}, {1, 1, 1, 16}, {3, 4, 1, 2}, {1, 1, 1, 7}};
	struct loads_dataset d;
	int most = 0;
	open_mixed(&d, state);
	for (size_t l = 0; l < sizeof(dynamic) / sizeof(dynamic[0]); l++)
		for (int windows = 1; windows <= 3; windows++)
			for (int64_t max_tokens = 0; max_tokens <= 70; max_tokens += 70) {
				struct wlb_loader_options o =
					loads_options(WLB_STRATEGY_DYNAMIC, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS,
				                      windows, max_tokens, dynamic[l]);
				o.halved_rows = windows == 2;
				int exchanges = check_layout(&d, &o);
				most = exchanges > most ? exchanges : most;
			}
	assert_in_range(most, 3, 4);
	loads_close(&d);
}

/* A step of less tokens than there are ranks: many have none, some micro-batches are empty. */
static void more_ranks_than_tokens(void **state)
{
	static const int32_t lengths[] = {2, 2, 4, 2, 3};
	struct loads_dataset d;
	loads_open(&d, state, lengths, 5);
	for (int strategy = WLB_STRATEGY_BALANCED; strategy <= WLB_STRATEGY_DYNAMIC; strategy++) {
		struct wlb_loader_options o = loads_options((enum wlb_strategy)strategy, WLB_SHARDING_ADAPTIVE, 3, 2, 1,
		                                            0, (struct wlb_layout){4, 8, 1, 3});
		check_layout(&d, &o);
	}
	loads_close(&d);
}

/* Spans of just over half a window: balanced packs two where little over one window's tokens are allowed, and only
 * one fits a micro-batch of a window, as with dynamic packing one fits that of one replica. */
static void tight_micro_batches_hold_every_step(void **state)
{
	int32_t lengths[120];
	struct loads_dataset d;
	for (int i = 0; i < 120; i++)
		lengths[i] = i % 5 == 0 ? 10 : 34;
	loads_open(&d, state, lengths, 120);
	for (int l = 0; l < LAYOUTS; l++)
		for (int64_t most = SEQ_LENGTH; most <= SEQ_LENGTH + 20; most += 10) {
			struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE,
			                                            SEQ_LENGTH, WINDOWS, 1, most, layouts[l]);
			check_layout(&d, &o);
			o = loads_options(WLB_STRATEGY_DYNAMIC, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS, 1, most,
			                  layouts[l]);
			check_layout(&d, &o);
		}
	loads_close(&d);
}

/* Whether greedy keeps all of the first batch in its queues. */
static int first_step_is_empty(const struct loads_dataset *d, const struct wlb_loader_options *o)
{
	struct wlb_packer_options packing;
	struct wlb_error error;
	struct loads_stream stream;
	struct wlb_span spans[2 * WINDOWS];
	wlb_packer_options_init(&packing, o->seq_length, (int32_t)o->global_batch_size);
	packing.strategy = o->packing;
	struct wlb_packer *packer = wlb_packer_new(&d->model, &packing, &error);
	loads_stream_open(&stream, d, o);
	const struct wlb_step *step = loads_stream_next(&stream);
	assert_in_range(step->count, 1, 2 * WINDOWS);
	for (size_t i = 0; i < step->count; i++)
		spans[i] = step->spans[i].span;
	int empty = wlb_packer_next(packer, spans, step->count, &error)->tokens == 0;
	wlb_packer_free(packer);
	loads_stream_close(&stream);
	return empty;
}

/* All documents wait in queues that are not full: the loader empties the queues. */
static void greedy_trains_something_in_every_step(void **state)
{
	int32_t lengths[100];
	struct loads_dataset d;
	for (int i = 0; i < 100; i++)
		lengths[i] = i % 3 == 0 ? SEQ_LENGTH / 2 : SEQ_LENGTH;
	loads_open(&d, state, lengths, 100);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_GREEDY, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS, 1,
	                                            0, (struct wlb_layout){1, 1, 1, 2});
	while (o.seed < 1000 && !first_step_is_empty(&d, &o))
		o.seed++;
	assert_true(o.seed < 1000);
	check_layout(&d, &o);
	loads_close(&d);
}

static void assert_same_batch(const struct loads_batch *a, const struct loads_batch *b, int cp)
{
	size_t row_bytes = (size_t)a->about.rows * sizeof(int32_t);
	assert_int_equal(a->about.tokens, b->about.tokens);
	assert_int_equal(a->about.rows, b->about.rows);
	assert_int_equal(a->about.own_rows, b->about.own_rows);
	assert_int_equal(a->about.segments.count, b->about.segments.count);
	assert_true(a->about.work == b->about.work);
	if (a->about.tokens == 0)
		return;
	assert_memory_equal(a->ids, b->ids, row_bytes);
	assert_memory_equal(a->targets, b->targets, row_bytes);
	assert_memory_equal(a->positions, b->positions, row_bytes);
	assert_memory_equal(a->segments, b->segments, (size_t)a->about.segments.count * sizeof(*a->segments));
	if (cp > 1) {
		assert_memory_equal(a->from_ranks, b->from_ranks, (size_t)a->about.tokens * sizeof(int32_t));
		assert_memory_equal(a->to_ranks, b->to_ranks, (size_t)cp * row_bytes);
	}
}

static void assert_same_step(const struct loads_group *a, const struct loads_group *b)
{
	for (int r = 0; r < a->ranks; r++) {
		const struct wlb_loaded_step *x = a->steps[r], *y = b->steps[r];
		assert_int_equal(x->step, y->step);
		assert_memory_equal(&x->schedule, &y->schedule, sizeof(x->schedule));
		assert_int_equal(x->packer_state_bytes, y->packer_state_bytes);
		assert_memory_equal(x->packer_state, y->packer_state, x->packer_state_bytes);
	}
	for (int i = 0; i < a->ranks * a->options.micro_batches; i++)
		assert_same_batch(&a->batches[i], &b->batches[i], a->options.layout.cp);
}

static void gives_the_same_for_the_same(void **state)
{
	struct loads_dataset d;
	struct loads_group a, b;
	open_mixed(&d, state);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS,
	                                            1, 0, (struct wlb_layout){2, 2, 1, 2});
	loads_group_open(&a, &d, &o);
	loads_group_open(&b, &d, &o);
	for (int step = 0; step < STEPS; step++) {
		loads_group_next(&a);
		loads_group_next(&b);
		assert_same_step(&a, &b);
	}
	loads_group_close(&a);
	loads_group_close(&b);
	loads_close(&d);
}

static void restore_all(struct loads_group *to, const struct wlb_loaded_step *from)
{
	struct wlb_error error;
	for (int r = 0; r < to->ranks; r++)
		if (wlb_loader_restore(to->loaders[r], &from->schedule, from->packer_state, from->packer_state_bytes,
		                       &error) < 0)
			fail_msg("%s", error.message);
}

/* The loader is a step ahead of the step that it returned; the state is that after the returned step. */
static void restoring_gives_the_same_future(void **state)
{
	struct loads_dataset d;
	open_mixed(&d, state);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS,
	                                            1, 0, (struct wlb_layout){1, 2, 1, 2});
	for (int after = 1; after < 12; after += 2) {
		struct loads_group run, resumed;
		loads_group_open(&run, &d, &o);
		loads_group_open(&resumed, &d, &o);
		for (int step = 0; step < after; step++)
			loads_group_next(&run);
		restore_all(&resumed, run.steps[0]);
		for (int step = 0; step < 3; step++) {
			loads_group_next(&run);
			loads_group_next(&resumed);
			assert_same_step(&run, &resumed);
		}
		loads_group_close(&run);
		loads_group_close(&resumed);
	}
	loads_close(&d);
}

static void a_run_goes_on_under_another_layout(void **state)
{
	struct loads_dataset d;
	struct loads_group before, after;
	struct loads_stream stream;
	open_mixed(&d, state);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS,
	                                            1, 0, (struct wlb_layout){1, 2, 1, 2});
	struct wlb_loader_options other = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_SEQUENCE, SEQ_LENGTH,
	                                                WINDOWS, 2, 0, (struct wlb_layout){2, 1, 1, 3});
	loads_group_open(&before, &d, &o);
	loads_group_open(&after, &d, &other);
	loads_stream_open(&stream, &d, &o);
	for (int step = 0; step < 5; step++) {
		loads_group_next(&before);
		expect_step(&before, loads_stream_next(&stream));
	}
	restore_all(&after, before.steps[0]);
	for (int step = 0; step < 5; step++) {
		loads_group_next(&after);
		expect_step(&after, loads_stream_next(&stream));
	}
	loads_stream_close(&stream);
	loads_group_close(&before);
	loads_group_close(&after);
	loads_close(&d);
}

static void other_options_are_refused(void **state)
{
	struct loads_dataset d;
	struct wlb_error error;
	open_mixed(&d, state);
	struct wlb_layout one = {1, 1, 1, 1};
	struct wlb_loader_options o =
		loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS, 1, 0, one);
	struct wlb_loader_options others[] = {
		o,
		loads_options(WLB_STRATEGY_GREEDY, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS, 1, 0, one),
		loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH / 2, WINDOWS, 1, 0, one),
		loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS + 1, 1, 0, one),
	};
	others[0].seed++;
	struct wlb_loader *loader = loads_new(&d, &o);
	const struct wlb_loaded_step *step = loads_next(loader);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct wlb_loader *other = loads_new(&d, &others[i]);
		assert_int_equal(wlb_loader_restore(other, &step->schedule, step->packer_state,
		                                    step->packer_state_bytes, &error),
		                 -1);
		wlb_loader_free(other);
	}
	assert_int_equal(
		wlb_loader_restore(loader, &step->schedule, step->packer_state, step->packer_state_bytes, &error), -1);
	assert_says(error.message, "before its first step");
	wlb_loader_free(loader);
	loads_close(&d);
}

static void a_token_beyond_the_vocabulary_is_an_error(void **state)
{
	struct loads_dataset d;
	struct wlb_error error;
	const struct wlb_loaded_step *step;
	double waited_s;
	int32_t lengths[40];
	for (int i = 0; i < 40; i++)
		lengths[i] = 30;
	loads_open(&d, state, lengths, 40);
	d.model.vocab_size = 1199; /* the last id of all, which is a target only */
	struct wlb_loader_options o =
		loads_options(WLB_STRATEGY_PLAIN, WLB_SHARDING_ADAPTIVE, 30, 2, 1, 0, (struct wlb_layout){1, 1, 1, 1});
	struct wlb_loader *loader = loads_new(&d, &o);
	int good = 0;
	while (good < 100 && wlb_loader_next(loader, &step, &waited_s, &error) == 0)
		good++;
	assert_in_range(good, 0, 19);                               /* an epoch has 20 steps */
	assert_int_equal(wlb_loader_await(loader, 0.0, &error), 1); /* an error is known without a wait too */
	assert_says(error.message, "x.bin: document 39 holds token id 1199, ids must be below vocab_size 1199");
	memset(&error, 0, sizeof(error));
	assert_int_equal(wlb_loader_next(loader, &step, &waited_s, &error), -1);
	assert_says(error.message, "document 39");
	wlb_loader_free(loader);
	loads_close(&d);
}

/* Documents held by a packer's state that another dataset does not have. */
static void a_held_document_that_is_not_there_is_an_error(void **state)
{
	struct loads_dataset d;
	struct wlb_error error;
	const struct wlb_loaded_step *step;
	double waited_s;
	int32_t lengths[100];
	for (int i = 0; i < 100; i++)
		lengths[i] = 40;
	struct wlb_loader_options o =
		loads_options(WLB_STRATEGY_GREEDY, WLB_SHARDING_ADAPTIVE, 64, 4, 1, 0, (struct wlb_layout){1, 1, 1, 1});
	loads_open(&d, state, lengths, 100);
	struct wlb_loader *loader = loads_new(&d, &o);
	do
		step = loads_next(loader);
	while (step->held_tokens == 0);
	size_t bytes = step->packer_state_bytes;
	void *held = malloc(bytes);
	assert_non_null(held);
	memcpy(held, step->packer_state, bytes);
	wlb_loader_free(loader);
	loads_close(&d);

	loads_open(&d, state, lengths, 3);
	struct wlb_schedule *schedule = wlb_schedule_new(d.dataset, 64, 4, o.seed, &error);
	struct wlb_schedule_state at;
	wlb_schedule_save(schedule, &at);
	loader = loads_new(&d, &o);
	assert_int_equal(wlb_loader_restore(loader, &at, held, bytes, &error), 0);
	assert_int_equal(wlb_loader_next(loader, &step, &waited_s, &error), -1);
	assert_says(error.message, "it has 3: use the dataset of the run");
	wlb_schedule_free(schedule);
	wlb_loader_free(loader);
	loads_close(&d);
	free(held);
}

/* Two blocks of the device's memory are used alternately, and after some steps no other is allocated. */
static void memory_settles(void **state)
{
	enum { SETTLED = 30, MORE = 30 };
	struct loads_dataset d;
	const int32_t *blocks[2] = {NULL, NULL};
	open_mixed(&d, state);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS,
	                                            1, 0, (struct wlb_layout){1, 2, 1, 1});
	struct wlb_loader *loader = loads_new(&d, &o);
	for (int step = 0; step < SETTLED + MORE; step++) {
		const int32_t *ids = loads_next(loader)->list[0].ids; /* at the block's beginning */
		if (step >= SETTLED)
			assert_ptr_equal(ids, blocks[step % 2]);
		blocks[step % 2] = ids;
	}
	assert_ptr_not_equal(blocks[0], blocks[1]);
	wlb_loader_free(loader);
	loads_close(&d);
}

static void ignore(int signal)
{
	(void)signal;
}

/* A signal that the caller waits for must not be lost in the loader's thread. */
static void signals_are_left_to_the_caller(void **state)
{
	struct loads_dataset d;
	sigset_t usr1;
	open_mixed(&d, state);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS,
	                                            1, 0, (struct wlb_layout){1, 1, 1, 1});
	struct wlb_loader *loader = loads_new(&d, &o);
	loads_next(loader);
	signal(SIGUSR1, ignore);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	kill(getpid(), SIGUSR1);
	struct timespec chance = {.tv_nsec = 100000000}, most = {.tv_sec = 10}; /* for the other thread to take it */
	nanosleep(&chance, NULL);
	assert_int_equal(sigtimedwait(&usr1, NULL, &most), SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
	signal(SIGUSR1, SIG_DFL);
	wlb_loader_free(loader);
	loads_close(&d);
}

/* The loader's threads that run now: the linker puts __wrap_pthread_create in the place of the library's. */
static atomic_int running;

struct routine {
	void *(*run)(void *);
	void *argument;
};

static void *run_counted(void *argument)
{
	struct routine routine = *(struct routine *)argument;
	free(argument);
	void *result = routine.run(routine.argument);
	atomic_fetch_sub(&running, 1);
	return result;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	struct routine *routine = malloc(sizeof(*routine));
	assert_non_null(routine);
	*routine = (struct routine){run, argument};
	atomic_fetch_add(&running, 1);
	return __real_pthread_create(thread, attributes, run_counted, routine);
}

/* While it prepares a step, while it waits for its turn, and before it was started. */
static void freeing_ends_the_thread_at_any_time(void **state)
{
	struct loads_dataset d;
	open_mixed(&d, state);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS,
	                                            1, 0, (struct wlb_layout){1, 1, 1, 1});
	for (int i = 0; i < 60; i++) {
		int steps = i % 4;
		struct timespec later = {.tv_nsec = i * 20000L};
		struct wlb_loader *loader = loads_new(&d, &o);
		for (int step = 0; step < steps; step++)
			loads_next(loader);
		nanosleep(&later, NULL);
		assert_int_equal(atomic_load(&running), steps > 0);
		wlb_loader_free(loader);
		assert_int_equal(atomic_load(&running), 0);
	}
	wlb_loader_free(NULL);
	loads_close(&d);
}

static void nothing_is_prepared_after_the_last_step(void **state)
{
	struct loads_dataset d;
	struct wlb_error error;
	const struct wlb_loaded_step *step;
	double waited_s;
	open_mixed(&d, state);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS,
	                                            1, 0, (struct wlb_layout){1, 1, 1, 1});
	o.last_step = 5;
	struct wlb_loader *whole = loads_new(&d, &o), *resumed = loads_new(&d, &o);
	step = loads_next(whole);
	step = loads_next(whole);
	assert_int_equal(
		wlb_loader_restore(resumed, &step->schedule, step->packer_state, step->packer_state_bytes, &error), 0);
	for (int number = 3; number <= 5; number++) {
		assert_int_equal(loads_next(whole)->step, number);
		assert_int_equal(loads_next(resumed)->step, number);
	}
	assert_int_equal(wlb_loader_next(whole, &step, &waited_s, &error), -1);
	assert_says(error.message, "step 6 was asked for, the last of the run is 5");
	assert_int_equal(wlb_loader_next(resumed, &step, &waited_s, &error), -1);
	wlb_loader_free(whole);
	wlb_loader_free(resumed);
	loads_close(&d);
}

static void a_loader_without_a_bound_is_refused(void **state)
{
	struct loads_dataset d;
	struct wlb_error error;
	open_mixed(&d, state);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS,
	                                            1, 0, (struct wlb_layout){1, 1, 1, 1});
	o.storage_timeout_s = 0.0;
	assert_null(wlb_loader_new(d.dataset, &d.model, &o, d.device, &error));
	assert_says(error.message, "storage_timeout_s is 0: it must be above 0");
	loads_close(&d);
}

/* Tiles of queries of the first half come first. */
static void check_tiles(const struct wlb_rows *rows, int32_t number)
{
	const struct wlb_micro_batch *batch = &rows->list[number];
	const struct wlb_query_tile *tiles =
		(const struct wlb_query_tile *)(rows->host + rows->arrays[number].query_tiles);
	for (int i = 0; batch->tokens > 0 && i < batch->segments.query_tile_count; i++)
		assert_int_equal(tiles[i].segment < batch->first_segments, i < batch->first_query_tiles);
}

/* Prepares steps of one rank in a block of wlb_rows_elements_max elements; returns the most that one of them took. */
static size_t most_used(const struct loads_dataset *d, const struct wlb_loader_options *options, int tile_rows)
{
	struct wlb_preparer preparer;
	struct wlb_prepared prepared = {0};
	struct wlb_error error;
	atomic_bool stopping = 0;
	size_t most = wlb_rows_elements_max(options, tile_rows), used = 0;
	int32_t *block = malloc(most * sizeof(*block));
	assert_int_equal(wlb_preparer_init(&preparer, d->dataset, &d->model, options, tile_rows, &error), 0);
	assert_int_equal(wlb_rows_init(&prepared.rows, options->micro_batches, &error), 0);
	wlb_rows_use_block(&prepared.rows, block, most);
	for (int step = 0; step < STEPS; step++) {
		if (wlb_prepare(&preparer, &prepared, &stopping, &error) < 0)
			fail_msg("%s", error.message);
		used = prepared.rows.used > used ? prepared.rows.used : used;
		for (int32_t m = 0; m < prepared.rows.micro_batches; m++)
			check_tiles(&prepared.rows, m);
	}
	wlb_prepared_free(&prepared);
	wlb_preparer_free(&preparer);
	free(block);
	return used;
}

static void every_step_fits_where_memory_is_given(void **state)
{
	struct loads_dataset mixed, shortest;
	int32_t lengths[1000];
	for (int i = 0; i < 1000; i++)
		lengths[i] = 2; /* spans of 1 token */
	open_mixed(&mixed, state);
	for (int l = 0; l < LAYOUTS; l++)
		for (int sharding = WLB_SHARDING_SEQUENCE; sharding <= WLB_SHARDING_ADAPTIVE; sharding++)
			for (int tile_rows = 0; tile_rows <= 64; tile_rows = tile_rows == 0 ? 1 : 8 * tile_rows) {
				struct wlb_loader_options o =
					loads_options(WLB_STRATEGY_BALANCED, (enum wlb_sharding)sharding, SEQ_LENGTH,
				                      WINDOWS, 1, 0, layouts[l]);
				o.coords.cp = layouts[l].cp - 1;
				o.halved_rows = 1;
				assert_true(most_used(&mixed, &o, tile_rows) > 0);
				o = loads_options(WLB_STRATEGY_DYNAMIC, (enum wlb_sharding)sharding, SEQ_LENGTH,
				                  WINDOWS, 1, 0, layouts[l]);
				o.coords = (struct wlb_coordinates){.cp = layouts[l].cp - 1, .dp = layouts[l].dp - 1};
				o.halved_rows = 1;
				assert_true(most_used(&mixed, &o, tile_rows) > 0);
			}
	loads_close(&mixed);
	loads_open(&shortest, state, lengths, 1000);
	struct wlb_loader_options o =
		loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS, 1, 0, layouts[0]);
	assert_true(most_used(&shortest, &o, 64) > wlb_rows_elements_max(&o, 64) / 2);
	loads_close(&shortest);
}

static int is_same_batch(const struct loads_batch *a, const struct loads_batch *b)
{
	size_t bytes = (size_t)a->about.rows * sizeof(int32_t);
	return a->about.tokens == b->about.tokens && a->about.rows == b->about.rows &&
	       a->about.own_rows == b->about.own_rows && memcmp(a->ids, b->ids, bytes) == 0 &&
	       memcmp(a->targets, b->targets, bytes) == 0 && memcmp(a->positions, b->positions, bytes) == 0;
}

/* Returns the replica that trains the micro-batch, -1: none. */
static int replica_of(const struct loads_group *g, const struct loads_batch *batch, int cp)
{
	for (int dp = 0; dp < g->options.layout.dp; dp++)
		for (int m = 0; m < g->options.micro_batches; m++) {
			const struct loads_batch *trained = loads_group_batch(g, dp, cp, m);
			if (trained->about.tokens > 0 && is_same_batch(trained, batch))
				return dp;
		}
	return -1;
}

static void check_of_rank(const struct loads_group *g, int dp, int cp, struct loads_batch *batch)
{
	const struct wlb_loaded_step *step = g->steps[dp * g->options.layout.cp + cp];
	assert_non_null(step->check);
	*batch = loads_fetch(g->data->device, step->check, &g->options.layout);
	check_rows(batch, g->options.layout.tp);
}

static void a_check_is_one_micro_batch_of_all_replicas(void **state)
{
	enum { INTERVAL = 2, DP = 3, CP = 2 };
	struct loads_dataset d;
	struct loads_group g;
	unsigned char trained_by[DP] = {0};
	open_mixed(&d, state);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_DOCUMENT, SEQ_LENGTH, WINDOWS,
	                                            1, 0, (struct wlb_layout){2, CP, 1, DP});
	o.check_interval = INTERVAL;
	loads_group_open(&g, &d, &o);
	for (int step = 1; step <= 3 * STEPS; step++) {
		loads_group_next(&g);
		if (step % INTERVAL != 0) {
			assert_null(g.steps[0]->check);
			continue;
		}
		for (int cp = 0; cp < CP; cp++) {
			struct loads_batch first, other;
			check_of_rank(&g, 0, cp, &first);
			int replica = replica_of(&g, &first, cp);
			assert_in_range(replica, 0, DP - 1);
			trained_by[replica] = 1;
			for (int dp = 1; dp < DP; dp++) {
				check_of_rank(&g, dp, cp, &other);
				assert_true(is_same_batch(&first, &other));
				loads_batch_free(&other);
			}
			loads_batch_free(&first);
		}
	}
	assert_true(trained_by[0] && trained_by[1] && trained_by[2]);
	loads_group_close(&g);
	loads_close(&d);
}

/* With dynamic packing replicas have no micro-batches of their own: it is of the step's documents, others in each. */
static void a_check_of_dynamic_packing_is_the_same_on_all_replicas(void **state)
{
	enum { DP = 3, CP = 2 };
	struct loads_dataset d;
	struct loads_group g;
	int64_t last_id = -1;
	open_mixed(&d, state);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_DYNAMIC, WLB_SHARDING_DOCUMENT, SEQ_LENGTH, WINDOWS, 1,
	                                            0, (struct wlb_layout){2, CP, 1, DP});
	o.check_interval = 1;
	loads_group_open(&g, &d, &o);
	for (int step = 1; step <= STEPS; step++) {
		loads_group_next(&g);
		for (int cp = 0; cp < CP; cp++) {
			struct loads_batch first, other;
			check_of_rank(&g, 0, cp, &first);
			assert_in_range(first.about.tokens, 1, o.max_tokens);
			assert_in_range(first.about.rows, 1, wlb_loader_max_rows(&o));
			assert_true(cp > 0 || first.ids[0] != last_id);
			last_id = cp == 0 ? first.ids[0] : last_id;
			for (int dp = 1; dp < DP; dp++) {
				check_of_rank(&g, dp, cp, &other);
				assert_true(is_same_batch(&first, &other));
				loads_batch_free(&other);
			}
			loads_batch_free(&first);
		}
	}
	loads_group_close(&g);
	loads_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_layout_trains_the_packed_steps, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(dynamic_packing_gives_each_rank_the_keys_of_its_documents,
	                                        fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(more_ranks_than_tokens, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(tight_micro_batches_hold_every_step, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(greedy_trains_something_in_every_step, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(gives_the_same_for_the_same, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(restoring_gives_the_same_future, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_run_goes_on_under_another_layout, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(other_options_are_refused, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_token_beyond_the_vocabulary_is_an_error, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(a_held_document_that_is_not_there_is_an_error, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(a_check_is_one_micro_batch_of_all_replicas, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(a_check_of_dynamic_packing_is_the_same_on_all_replicas, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(memory_settles, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(signals_are_left_to_the_caller, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(freeing_ends_the_thread_at_any_time, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(nothing_is_prepared_after_the_last_step, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(a_loader_without_a_bound_is_refused, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(every_step_fits_where_memory_is_given, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
