/* Which replica trains which micro-batch: equal time where it is balanced, Megatron-LM's order where it is not; how
 * many micro-batches a step needs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/libwlb/sim_cases.h"
#include "tests/unit/worker/loads.h"
#include "worker/load/assign.h"
#include "worker/load/document_time.h"

enum { SEQ_LENGTH = 4096, WINDOWS = 16, STEPS = 20, MOST_RANKS = 16 };

/* Predicted seconds of one rank's part of a micro-batch. */
static double seconds(const struct loads_batch *b, const struct wlb_document_time *time)
{
	double attention_s = 0.0;
	for (int s = 0; s < b->about.segments.count; s++)
		attention_s += wlb_attention_seconds(&time->kernels, b->segments[s].q_count, b->segments[s].k_count);
	double token_s = time->layers * time->kernels.gemm_token_s + time->head_token_s;
	return 3.0 * token_s * (double)b->about.own_rows + 3.5 * time->layers * attention_s;
}

/* How far ranks are from equal, in the mean of all steps: (most - least) / mean, and most / mean - 1. */
struct spread {
	double seconds;
	double flops;
	double heaviest_flops;
};

static double unevenness(const double *values, int count)
{
	double most = values[0], least = values[0], sum = 0.0;
	for (int i = 0; i < count; i++) {
		most = values[i] > most ? values[i] : most;
		least = values[i] < least ? values[i] : least;
		sum += values[i];
	}
	return (most - least) * count / sum;
}

static double heaviest(const double *values, int count)
{
	double most = 0.0, sum = 0.0;
	for (int i = 0; i < count; i++) {
		most = fmax(most, values[i]);
		sum += values[i];
	}
	return most * count / sum - 1.0;
}

static void add_step(const struct loads_group *g, const struct wlb_document_time *time, struct spread *spread)
{
	double rank_s[MOST_RANKS] = {0}, flops[MOST_RANKS];
	int count = g->options.micro_batches;
	for (int r = 0; r < g->ranks; r++) {
		double sum = 0.0;
		for (int m = 0; m < count; m++) {
			rank_s[r] += seconds(&g->batches[r * count + m], time);
			sum += g->batches[r * count + m].about.work;
		}
		flops[r] = g->steps[r]->work;
		assert_true(sum == flops[r]);
	}
	spread->seconds += unevenness(rank_s, g->ranks) / STEPS;
	spread->flops += unevenness(flops, g->ranks) / STEPS;
	spread->heaviest_flops += heaviest(flops, g->ranks) / STEPS;
}

static struct spread measure(const struct loads_dataset *d, enum wlb_strategy packing, int64_t micro_batch_size,
                             struct wlb_layout layout)
{
	struct loads_group g;
	struct spread spread = {0};
	struct wlb_document_time time;
	struct wlb_loader_options o =
		loads_options(packing, WLB_SHARDING_DOCUMENT, SEQ_LENGTH, WINDOWS, micro_batch_size, 0, layout);
	wlb_document_time_init(&time, &d->model, layout.tp);
	loads_group_open(&g, d, &o);
	for (int step = 0; step < STEPS; step++) {
		loads_group_next(&g);
		add_step(&g, &time, &spread);
	}
	loads_group_close(&g);
	return spread;
}

static void open_deep(struct loads_dataset *d, void **state)
{
	loads_open_skewed(d, state, 4000, 32);
	d->model.num_hidden_layers = 4096; /* or all would be lost in a head for so many ids */
}

static void balanced_ranks_take_equal_time(void **state)
{
	struct loads_dataset d;
	open_deep(&d, state);
	struct wlb_layout four = {1, 1, 1, 4}, sixteen = {1, 1, 1, 16};
	assert_true(measure(&d, WLB_STRATEGY_BALANCED, 1, four).seconds < 0.03);
	assert_true(measure(&d, WLB_STRATEGY_PLAIN, 1, four).seconds > 0.3);
	/* One micro-batch each: what their exchanges leave is all there is. */
	assert_true(measure(&d, WLB_STRATEGY_BALANCED, 1, sixteen).seconds < 0.1);
	assert_true(measure(&d, WLB_STRATEGY_PLAIN, 1, sixteen).seconds > 1.0);
	/* Assigned again to few large ones: time is equal, and FLOPs are not. */
	struct spread few = measure(&d, WLB_STRATEGY_BALANCED, 4, four);
	assert_true(few.seconds < 0.002 && few.flops > few.seconds);
	loads_close(&d);
}

/* Documents are short here, so that tiles blur the time of their shards: FLOPs. */
static void context_parallel_ranks_have_equal_work(void **state)
{
	struct loads_dataset d;
	open_deep(&d, state);
	struct wlb_layout layout = {1, 4, 1, 4};
	assert_true(measure(&d, WLB_STRATEGY_BALANCED, 1, layout).flops < 0.04);
	assert_true(measure(&d, WLB_STRATEGY_PLAIN, 1, layout).flops > 0.3);
	loads_close(&d);
}

/* Without delay: no document waits for a later step. Seconds are predicted, FLOPs are counted. */
static void dynamic_ranks_have_equal_work(void **state)
{
	static const struct wlb_layout dynamic[] = {{1, 1, 1, 8}, {1, 8, 1, 1}, {1, 2, 1, 4}, {1, 1, 2, 4}};
	struct loads_dataset d;
	open_deep(&d, state);
	for (int l = 0; l < 4; l++)
		for (int64_t windows = 1; windows <= 2; windows++) {
			struct spread spread = measure(&d, WLB_STRATEGY_DYNAMIC, windows, dynamic[l]);
			assert_true(spread.seconds < 0.04);
			assert_true(spread.heaviest_flops <= 0.01);
		}
	loads_close(&d);
}

/* The most rows that a rank exchanges in a micro-batch where each of a document's ranks has as many as the first. */
static int64_t most_exchanged(const struct wlb_place *places, const int64_t *tokens, size_t count, int32_t ranks,
                              int32_t micro_batches)
{
	int64_t most = 0;
	for (int32_t m = 0; m < micro_batches; m++)
		for (int32_t r = 0; r < ranks; r++) {
			int64_t rows = 0;
			for (size_t i = 0; i < count; i++) {
				const struct wlb_place *at = &places[i];
				if (at->micro_batch == m && r >= at->first_rank && r < at->first_rank + at->ranks)
					rows += (tokens[i] + at->ranks - 1) / at->ranks * at->ranks;
			}
			most = rows > most ? rows : most;
		}
	return most;
}

/* Places few tokens, and as many as a step may have. Returns whether all documents are on groups of
 * as many ranks. */
static int place_any_step(const struct wlb_document_time *time, unsigned *random)
{
	struct wlb_layout layout = {1, 1 + rand_r(random) % 4, 1, 1 + rand_r(random) % 8};
	int64_t window = 1 + rand_r(random) % 8, windows = 1 + rand_r(random) % 16, left = window * windows,
		tokens[128];
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_DYNAMIC, WLB_SHARDING_ADAPTIVE, window, windows, 1,
	                                            rand_r(random) % 2 ? window : 0, layout);
	int32_t ranks = layout.cp * layout.dp, reserved = wlb_loader_key_ranks(&o);
	const struct wlb_rank_space space = {ranks, reserved, wlb_loader_rank_tokens(&o), 0.0};
	struct wlb_placement placement;
	struct wlb_error error;
	size_t count = 0;
	while (left > 0) {
		int64_t next = 1 + rand_r(random) % window;
		tokens[count] = next < left ? next : left;
		left -= tokens[count++];
	}
	struct wlb_placer *placer = wlb_placer_new(&space, wlb_document_s, time, &error);
	assert_non_null(placer);
	assert_int_equal(wlb_placer_place(placer, tokens, count, o.micro_batches, &placement, &error), 0);
	int in_groups = placement.in_groups;
	assert_in_range(reserved, layout.cp, ranks);
	assert_true(in_groups || most_exchanged(placement.places, tokens, count, ranks, o.micro_batches) <=
	                                 reserved * wlb_loader_rank_tokens(&o));
	for (size_t i = 0; i < count && in_groups; i++)
		assert_int_equal(placement.places[i].ranks, reserved);
	wlb_placer_free(placer);
	return in_groups;
}

static void any_step_has_places_within_what_is_reserved(void **state)
{
	struct loads_dataset d;
	struct wlb_document_time time;
	unsigned random = 1;
	int in_groups = 0;
	open_deep(&d, state);
	wlb_document_time_init(&time, &d.model, 1);
	for (int trial = 0; trial < 5000; trial++)
		in_groups += place_any_step(&time, &random);
	assert_true(in_groups > 0 && in_groups < 5000);
	loads_close(&d);
}

/* WLB-LLM's micro-batches are kept where they are as many as the layout's. */
static void greedy_is_as_published(void **state)
{
	struct loads_dataset d;
	struct loads_group g;
	struct loads_stream stream;
	open_deep(&d, state);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_GREEDY, WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS, 1,
	                                            0, (struct wlb_layout){1, 1, 1, 4});
	loads_group_open(&g, &d, &o);
	loads_stream_open(&stream, &d, &o);
	for (int i = 0; i < 3; i++) {
		const struct wlb_step *step = loads_stream_next(&stream);
		unsigned char taken[WINDOWS] = {0};
		loads_group_next(&g);
		for (int b = 0; b < WINDOWS; b++)
			for (int p = 0; p < WINDOWS; p++)
				taken[p] |= !taken[p] && step->loads[p].tokens == g.batches[b].about.tokens;
		for (int p = 0; p < WINDOWS; p++)
			assert_true(taken[p]);
	}
	loads_stream_close(&stream);
	loads_group_close(&g);
	loads_close(&d);
}

/* Longest first gives 63 + 38 and 62 + 50, and has no space for 37. */
static void packed_micro_batches_are_kept_where_a_span_would_not_fit(void **state)
{
	static const struct wlb_packed_span spans[] = {
		{.span = {0, 0, 63}, .micro_batch = 0}, {.span = {1, 0, 62}, .micro_batch = 0},
		{.span = {2, 0, 50}, .micro_batch = 1}, {.span = {3, 0, 38}, .micro_batch = 1},
		{.span = {4, 0, 37}, .micro_batch = 1},
	};
	static const struct wlb_step step = {.spans = spans, .count = 5, .micro_batches = 2, .tokens = 250};
	static const struct wlb_model model = {.hidden_size = 64,
	                                       .intermediate_size = 128,
	                                       .num_hidden_layers = 2,
	                                       .num_attention_heads = 4,
	                                       .num_key_value_heads = 4,
	                                       .head_dim = 16,
	                                       .vocab_size = 256};
	struct wlb_document_time time;
	struct wlb_assigner assigner;
	struct wlb_error error;
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, 100, 2, 1, 0,
	                                            (struct wlb_layout){1, 1, 1, 1});
	(void)state;
	wlb_document_time_init(&time, &model, 1);
	assert_int_equal(wlb_assigner_init(&assigner, &o, &time, &error), 0);
	assert_int_equal(wlb_assigner_assign(&assigner, &step, &error), 0);
	assert_int_equal(assigner.first[1], 2);
	assert_int_equal(assigner.first[2], 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(assigner.spans[i].document, i);
	wlb_assigner_free(&assigner);
}

/* The documents of the packed micro-batches [from, to), end to end, are what replica and slot have. */
static void expect_packed(const struct loads_group *g, int replica, int slot, const struct wlb_step *step, int from,
                          int to)
{
	const struct loads_batch *b = loads_group_batch(g, replica, 0, slot);
	int64_t row = 0;
	for (size_t i = 0; i < step->count; i++) {
		const struct wlb_packed_span *span = &step->spans[i];
		if (span->micro_batch < from || span->micro_batch >= to)
			continue;
		assert_true(row + span->span.tokens <= b->about.tokens);
		assert_int_equal(b->ids[row], loads_first_id(g->data, &span->span));
		row += span->span.tokens;
	}
	assert_int_equal(row, b->about.tokens);
}

static void check_order(const struct loads_dataset *d, enum wlb_strategy packing, int64_t windows,
                        int64_t micro_batch_size, int dp, int joined)
{
	struct loads_group g;
	struct loads_stream stream;
	struct wlb_loader_options o = loads_options(packing, WLB_SHARDING_ADAPTIVE, 64, windows, micro_batch_size, 0,
	                                            (struct wlb_layout){1, 1, 1, dp});
	loads_group_open(&g, d, &o);
	loads_stream_open(&stream, d, &o);
	for (int i = 0; i < 4; i++) {
		const struct wlb_step *step = loads_stream_next(&stream);
		loads_group_next(&g);
		for (int bin = 0; bin < dp * o.micro_batches; bin++)
			expect_packed(&g, bin % dp, bin / dp, step, bin * joined, (bin + 1) * joined);
	}
	loads_stream_close(&stream);
	loads_group_close(&g);
}

/* A machine whose attention takes other times, as a share of products, than the compiled-in speeds say; its rates rise
 * by `rise` from each length to the next, which are a factor of 4 apart. */
static struct wlb_machine made_up(double rise)
{
	struct wlb_machine machine = {
		.peak_flops = 1e12, .gemm_efficiency = 0.5, .memory_bytes_per_s = 1e11, .element_bytes = 4};
	machine.attention.q_count = machine.attention.k_count = 5;
	for (int q = 0; q < 5; q++) {
		machine.attention.q_tokens[q] = machine.attention.k_tokens[q] = 64 * pow(4, q);
		for (int k = q; k < 5; k++) {
			machine.attention.forward_flops_per_s[q * 5 + k] = 1e9 * pow(rise, k);
			machine.attention.backward_flops_per_s[q * 5 + k] = 1e9 * pow(rise, k);
		}
	}
	return machine;
}

static void measured_times_are_those_of_the_machine_and_rise(void **state)
{
	struct loads_dataset d;
	struct wlb_document_speeds speeds;
	struct wlb_document_time time;
	struct wlb_error error;
	open_deep(&d, state);
	struct wlb_machine machine = made_up(1.5);
	wlb_document_speeds_of(&machine, &d.model, 1, 4096, &speeds);
	assert_int_equal(wlb_document_time_measured(&time, &d.model, &speeds, &error), 0);
	double attention_s = wlb_machine_attention_s(&machine, (int)d.model.num_attention_heads, (int)d.model.head_dim,
	                                             0, 1024, 1024, 0) +
	                     wlb_machine_attention_s(&machine, (int)d.model.num_attention_heads, (int)d.model.head_dim,
	                                             0, 1024, 1024, 1);
	double layers = (double)d.model.num_hidden_layers;
	double expected_s = 1024.0 * (layers * speeds.layer_token_s + speeds.head_token_s) + layers * attention_s;
	assert_true(fabs(wlb_document_s(&time, 1024) / expected_s - 1.0) < 1e-9);
	/* A machine that no device is: the work of a longer document must be more nevertheless. */
	machine = made_up(30);
	wlb_document_speeds_of(&machine, &d.model, 1, 4096, &speeds);
	assert_int_equal(wlb_document_time_measured(&time, &d.model, &speeds, &error), 0);
	double before = 0.0;
	for (int64_t tokens = 1; tokens < 1 << 17; tokens += 1 + tokens / 1000) {
		double seconds = wlb_document_s(&time, tokens);
		assert_true(seconds > before);
		before = seconds;
	}
	speeds.attention_s[0] = NAN;
	assert_int_equal(wlb_document_time_measured(&time, &d.model, &speeds, &error), -1);
	loads_close(&d);
}

/* Of all ranks together: those of context parallelism, and the stages of a pipeline. */
static void the_times_of_shards_are_those_of_documents(void **state)
{
	struct loads_dataset d;
	struct wlb_document_time time;
	struct wlb_shards shards = {0};
	struct wlb_error error;
	const int64_t tokens[] = {700, 64, 1300};
	double expected_s = 0.0;
	open_deep(&d, state);
	wlb_document_time_init(&time, &d.model, 1);
	time.kernels.q_tile = time.kernels.k_tile = 1; /* shards fill other tiles than documents */
	for (int i = 0; i < 3; i++)
		expected_s += wlb_document_s(&time, tokens[i]);
	for (int32_t ranks = 1; ranks <= 4; ranks *= 2)
		for (int32_t stages = 1; stages <= 3; stages++) {
			double sum_s = 0.0;
			assert_int_equal(wlb_shard(WLB_SHARDING_DOCUMENT, NULL, tokens, 3, ranks, &shards, &error), 0);
			for (int32_t rank = 0; rank < ranks; rank++) {
				int64_t rows = shards.first_row[rank + 1] - shards.first_row[rank];
				for (int32_t stage = 0; stage < stages; stage++)
					sum_s += wlb_shards_time_s(&time, &shards, rank, rows, stages,
					                           stage == stages - 1);
			}
			assert_true(fabs(sum_s / expected_s - 1.0) < 0.01);
		}
	wlb_shards_free(&shards);
	loads_close(&d);
}

static int64_t sum_of_ids(const struct loads_group *g)
{
	int64_t sum = 0;
	for (int i = 0; i < g->ranks * g->options.micro_batches; i++)
		for (int64_t row = 0; row < g->batches[i].about.own_rows; row++)
			sum += g->batches[i].ids[row];
	return sum;
}

static void a_machine_changes_who_trains_a_document_and_not_when(void **state)
{
	struct loads_dataset d;
	struct wlb_document_speeds speeds;
	struct loads_group plain, measured;
	int moved = 0;
	open_deep(&d, state);
	struct wlb_machine machine = made_up(1.5);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_DOCUMENT, SEQ_LENGTH, WINDOWS,
	                                            1, 0, (struct wlb_layout){1, 1, 1, 4});
	loads_group_open(&plain, &d, &o);
	wlb_document_speeds_of(&machine, &d.model, 1, SEQ_LENGTH, &speeds);
	o.speeds = &speeds;
	loads_group_open(&measured, &d, &o);
	for (int step = 0; step < STEPS; step++) {
		loads_group_next(&plain);
		loads_group_next(&measured);
		assert_int_equal(plain.steps[0]->tokens, measured.steps[0]->tokens);
		assert_int_equal(plain.steps[0]->documents, measured.steps[0]->documents);
		assert_int_equal(sum_of_ids(&plain), sum_of_ids(&measured));
		moved += plain.steps[0]->work != measured.steps[0]->work;
	}
	assert_true(moved > STEPS / 2);
	loads_group_close(&plain);
	loads_group_close(&measured);
	loads_close(&d);
}

static void plain_and_fixed_are_dealt_as_megatron_does(void **state)
{
	struct loads_dataset d;
	loads_open_skewed(&d, state, 400, 128);
	for (int strategy = WLB_STRATEGY_FIXED; strategy <= WLB_STRATEGY_PLAIN; strategy++) {
		enum wlb_strategy packing = (enum wlb_strategy)strategy;
		check_order(&d, packing, 8, 1, 1, 1);
		check_order(&d, packing, 8, 1, 4, 1);
		check_order(&d, packing, 8, 2, 2, 2);
		check_order(&d, packing, 8, 4, 1, 4);
		check_order(&d, packing, 7, 1, 3, 1); /* the last two slots stay empty */
		check_order(&d, packing, 7, 2, 2, 2); /* the last has one window */
		check_order(&d, packing, 2, 1, 5, 1); /* three replicas have none */
	}
	loads_close(&d);
}

struct choice {
	enum wlb_strategy packing;
	int64_t windows;
	int64_t micro_batch_size;
	int64_t max_tokens;
	int interleave;
	struct wlb_layout layout;
	int micro_batches;
	int64_t most_tokens;
};

/* The planner's plan has the micro-batches, and reckons with the memory, that the loader has. */
static void expect_planned(const struct choice *c, const struct wlb_loader_options *o)
{
	struct wlb_packed_span spans[16];
	struct wlb_load loads[16];
	const struct wlb_step sample = {.spans = spans, .count = 16, .loads = loads, .micro_batches = 16};
	const struct wlb_layout *l = &c->layout;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_search_options options;
	model.num_hidden_layers = 2;
	struct wlb_error error;
	for (int i = 0; i < 16; i++)
		spans[i] = (struct wlb_packed_span){.span.tokens = 5 + 6 * i, .micro_batch = i};
	wlb_search_options_init(&options, 1, 100, (int32_t)c->windows);
	wlb_cost_options_worker(&options.cost, &machine);
	options.sample = &sample;
	options.samples = 1;
	options.dynamic = options.charge_limit = 1;
	options.max_tokens = c->max_tokens;
	options.fixed = (struct wlb_search_fixed){.tp = l->tp,
	                                          .cp = l->cp,
	                                          .pp = l->pp,
	                                          .dp = l->dp,
	                                          .recompute = -1,
	                                          .interleave = c->interleave,
	                                          .micro_batch_windows = (int32_t)c->micro_batch_size};
	struct wlb_search_result *result = wlb_search(&model, &machine, &options, &error);
	if (result == NULL)
		fail_msg("%s", error.message);
	const struct wlb_candidate *best = &result->ranked[0];
	assert_int_equal(best->plan.micro_batches, o->micro_batches);
	assert_int_equal(best->plan.dynamic_cp, wlb_loader_key_ranks(o));
	assert_int_equal(best->micro_batch_tokens, o->max_tokens);
	wlb_search_free(result);
}

static void as_many_micro_batches_as_a_step_needs(void **state)
{
	static const struct choice choices[] = {
		/* Megatron-LM's number, a quarter more space where lengths may differ */
		{WLB_STRATEGY_PLAIN, 16, 1, 0, 1, {1, 1, 1, 4}, 4, 100},
		{WLB_STRATEGY_FIXED, 16, 2, 0, 1, {1, 1, 1, 4}, 2, 200},
		{WLB_STRATEGY_BALANCED, 16, 1, 0, 1, {1, 1, 1, 4}, 4, 125},
		{WLB_STRATEGY_GREEDY, 16, 4, 0, 1, {1, 1, 1, 2}, 2, 500},
		/* rounded up, then to the stages */
		{WLB_STRATEGY_BALANCED, 10, 1, 0, 1, {1, 1, 1, 4}, 3, 125},
		{WLB_STRATEGY_BALANCED, 10, 1, 0, 2, {1, 1, 2, 4}, 4, 125},
		{WLB_STRATEGY_BALANCED, 10, 1, 0, 1, {1, 1, 2, 4}, 3, 125},
		{WLB_STRATEGY_BALANCED, 1, 1, 0, 1, {1, 1, 1, 9}, 1, 125},
		/* more where they must be small */
		{WLB_STRATEGY_BALANCED, 16, 4, 250, 1, {1, 1, 1, 2}, 4, 250},
		{WLB_STRATEGY_BALANCED, 16, 4, 249, 1, {1, 1, 1, 2}, 8, 249},
		{WLB_STRATEGY_BALANCED, 16, 1, 124, 1, {1, 1, 1, 2}, 16, 124},
		{WLB_STRATEGY_BALANCED, 16, 1, 100, 3, {1, 1, 3, 2}, 18, 100},
		{WLB_STRATEGY_PLAIN, 16, 4, 199, 1, {1, 1, 1, 2}, 8, 100},
		/* no more than there can be in one */
		{WLB_STRATEGY_BALANCED, 4, 2, 1000000, 1, {1, 1, 1, 1}, 2, 500},
		{WLB_STRATEGY_PLAIN, 5, 2, 1000000, 1, {1, 1, 1, 1}, 3, 200},
		/* dynamic: space for one more window on all replicas, or a quarter more */
		{WLB_STRATEGY_DYNAMIC, 16, 1, 0, 1, {1, 1, 1, 1}, 16, 200},
		{WLB_STRATEGY_DYNAMIC, 16, 1, 0, 1, {1, 2, 1, 2}, 8, 150},
		{WLB_STRATEGY_DYNAMIC, 16, 2, 0, 1, {1, 1, 1, 8}, 1, 250},
		{WLB_STRATEGY_DYNAMIC, 16, 1, 100, 1, {1, 1, 1, 1}, 32, 100},
		{WLB_STRATEGY_DYNAMIC, 16, 1, 100, 1, {1, 1, 1, 4}, 6, 100},
		{WLB_STRATEGY_DYNAMIC, 2, 2, 0, 1, {1, 1, 1, 1}, 1, 200},
		{WLB_STRATEGY_DYNAMIC, 64, 4, 0, 1, {1, 2, 1, 4}, 4, 500},
		{WLB_STRATEGY_DYNAMIC, 16, 4, 1000000, 1, {1, 1, 1, 4}, 1, 1600},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		const struct choice *c = &choices[i];
		struct wlb_error error;
		struct wlb_loader_options o = {.packing = c->packing, .layout = c->layout};
		assert_int_equal(wlb_loader_micro_batches(100, c->windows, c->micro_batch_size, c->max_tokens,
		                                          c->interleave, &o, &error),
		                 0);
		assert_int_equal(o.micro_batches, c->micro_batches);
		assert_int_equal(o.max_tokens, c->most_tokens);
		assert_int_equal(o.seq_length, 100);
		assert_int_equal(o.global_batch_size, c->windows);
		if (c->packing == WLB_STRATEGY_DYNAMIC)
			expect_planned(c, &o);
	}
}

static void rows_are_shared_out_and_rounded_up(void **state)
{
	(void)state;
	struct wlb_loader_options o = {.max_tokens = 100, .layout = {1, 1, 1, 1}};
	assert_int_equal(wlb_loader_max_rows(&o), 100);
	o.layout.cp = 3;
	assert_int_equal(wlb_loader_max_rows(&o), 34);
	o.layout.tp = 4;
	assert_int_equal(wlb_loader_max_rows(&o), 36);
}

static void impossible_options_are_refused(void **state)
{
	static const struct {
		int64_t seq_length, windows, micro_batch_size, max_tokens;
		int tp, cp;
		const char *says;
	} cases[] = {
		{100, 8, 1, 99, 1, 1, "at most 99 tokens cannot hold a window of seq_length 100"},
		{100, 8, 0, 0, 1, 1, "micro_batch_size is 0: it must be between 1 and global_batch_size 8"},
		{100, 8, 9, 0, 1, 1, "micro_batch_size is 9"},
		{100, 0, 1, 0, 1, 1, "global_batch_size 0"},
		{0, 8, 1, 0, 1, 1, "seq_length 0"},
		{1 << 20, 1 << 12, 1, 0, 1, 1, "their product below 2^31"},
		{100, 8, 1, 0, 1 << 30, 2, "below 2^31 rows"},
		{100, 8, 1, 0, 1, 0, "cp=0"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_error error = {0};
		struct wlb_loader_options o = {.packing = WLB_STRATEGY_PLAIN,
		                               .layout = {cases[i].tp, cases[i].cp, 1, 1}};
		struct wlb_loader_options before = o;
		assert_int_equal(wlb_loader_micro_batches(cases[i].seq_length, cases[i].windows,
		                                          cases[i].micro_batch_size, cases[i].max_tokens, 1, &o,
		                                          &error),
		                 -1);
		assert_says(error.message, cases[i].says);
		assert_memory_equal(&o, &before, sizeof(o));
	}
}

/* Options that were not made by wlb_loader_micro_batches. */
static void a_loader_that_could_not_hold_its_steps_is_refused(void **state)
{
	struct loads_dataset d;
	struct wlb_error error;
	static const int32_t lengths[] = {50, 60};
	loads_open(&d, state, lengths, 2);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_ADAPTIVE, 100, 8, 1, 0,
	                                            (struct wlb_layout){1, 1, 1, 2});
	o.max_tokens--;
	assert_null(wlb_loader_new(d.dataset, &d.model, &o, d.device, &error));
	assert_says(error.message,
	            "4 micro-batches of at most 124 tokens on 2 replicas: 8 windows of seq_length 100 need "
	            "16 together");
	o = loads_options(WLB_STRATEGY_DYNAMIC, WLB_SHARDING_ADAPTIVE, 100, 8, 1, 0, (struct wlb_layout){1, 2, 1, 2});
	assert_int_equal(wlb_loader_check(&o, &error), 0);
	o.micro_batches = (1 << 18) + 1;
	assert_int_equal(wlb_loader_check(&o, &error), -1);
	assert_says(error.message,
	            "dynamic packing in 262145 micro-batches on 4 ranks (cp x dp): their product must be "
	            "at most 1048576");
	loads_close(&d);
}

/* In a ramp of the batch micro-batches are as large as those of the full batch, and fewer: at most one for each window
 * here. Every replica has the same steps. */
static void a_smaller_batch_has_fewer_micro_batches(void **state)
{
	static const enum wlb_strategy packings[] = {WLB_STRATEGY_BALANCED, WLB_STRATEGY_GREEDY, WLB_STRATEGY_FIXED,
	                                             WLB_STRATEGY_PLAIN};
	static const int windows[] = {2, 2, 2, 2, 2, 9, 9, 16, 16};
	enum { RAMP_STEPS = sizeof(windows) / sizeof(windows[0]), MOST_BATCHES = 64 };
	struct loads_dataset d;
	loads_open_skewed(&d, state, 2000, 32);
	for (int p = 0; p < 4; p++) {
		struct wlb_loader_options o = loads_options(packings[p], WLB_SHARDING_ADAPTIVE, SEQ_LENGTH, WINDOWS, 1,
		                                            0, (struct wlb_layout){1, 1, 1, 2});
		o.ramp = (struct wlb_batch_ramp){.start = 2, .increment = 7, .windows = 20};
		struct loads_group g;
		loads_group_open(&g, &d, &o);
		for (int step = 0; step < RAMP_STEPS; step++) {
			int64_t tokens = 0;
			int filled = 0;
			loads_group_next(&g);
			for (int i = 0; i < g.ranks * o.micro_batches; i++) {
				tokens += g.batches[i].about.tokens;
				filled += g.batches[i].about.tokens > 0;
			}
			assert_int_equal(g.steps[0]->windows, windows[step]);
			assert_int_equal(g.steps[1]->windows, windows[step]);
			assert_int_equal(tokens, g.steps[0]->tokens);
			assert_in_range(filled, 1, windows[step] + windows[step] % 2);
		}
		loads_group_close(&g);
	}
	loads_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(any_step_has_places_within_what_is_reserved, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(dynamic_ranks_have_equal_work, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_smaller_batch_has_fewer_micro_batches, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(balanced_ranks_take_equal_time, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(context_parallel_ranks_have_equal_work, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(greedy_is_as_published, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(plain_and_fixed_are_dealt_as_megatron_does, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(measured_times_are_those_of_the_machine_and_rise, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(the_times_of_shards_are_those_of_documents, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(a_machine_changes_who_trains_a_document_and_not_when, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test(packed_micro_batches_are_kept_where_a_span_would_not_fit),
		cmocka_unit_test(as_many_micro_batches_as_a_step_needs),
		cmocka_unit_test(rows_are_shared_out_and_rounded_up),
		cmocka_unit_test(impossible_options_are_refused),
		cmocka_unit_test_setup_teardown(a_loader_that_could_not_hold_its_steps_is_refused, fixture_setup,
	                                        fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
