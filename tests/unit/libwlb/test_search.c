/* The layout search against brute force on small spaces, and what it says where nothing fits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/libwlb/sim_cases.h"

static const int64_t lengths[] = {8192, 6000, 4000, 3000, 2500, 2000, 1500, 1200,
                                  1000, 900,  800,  700,  600,  500,  400,  376};

enum {
	BATCH = 16,
	WINDOW = 8192,
	LENGTHS = sizeof(lengths) / sizeof(lengths[0]),
	MOST_DOCUMENTS = 256,
	MOST_DRAWS = 32
};

static struct wlb_model small_model(void)
{
	struct wlb_model model = llama_7b();
	model.hidden_size = 1536;
	model.intermediate_size = 4096;
	model.num_hidden_layers = 6;
	model.num_attention_heads = model.num_key_value_heads = 12;
	return model;
}

static struct wlb_model model_with_experts(void)
{
	struct wlb_model model = small_model();
	model.family = WLB_FAMILY_MIXTRAL;
	model.intermediate_size = 1024;
	model.num_experts = 4;
	model.num_experts_per_tok = 2;
	return model;
}

/* Of another trainer than wlb-worker: the rules of Megatron-LM hold. */
static struct wlb_search_options small_options(int32_t nodes, const struct wlb_step *sample)
{
	struct wlb_search_options options;
	wlb_search_options_init(&options, nodes, WINDOW, BATCH);
	options.sample = sample;
	options.samples = 1;
	options.near_equal = 0.0;
	options.keep = 1 << 15;
	options.most_simulated = 1 << 20;
	return options;
}

static struct wlb_search_options worker_options(int32_t nodes, const struct wlb_step *sample)
{
	const struct wlb_machine machine = h100();
	struct wlb_search_options options = small_options(nodes, sample);
	wlb_cost_options_worker(&options.cost, &machine);
	return options;
}

/* Fills tokens with the documents of draw `draw` of `draws` and returns how many there are. The sorted lengths are cut
 * into as many equal parts as all draws have documents; each part gives its root mean square to the draw with the least
 * tokens, and each draw has the tokens of the batch. */
static size_t draw_documents(size_t draw, size_t draws, int64_t *tokens)
{
	int64_t all = 0, sums[MOST_DRAWS] = {0};
	size_t count = 0;
	for (int64_t i = 0; i < LENGTHS; i++)
		all += lengths[i];
	size_t of_all = (size_t)round((double)draws * BATCH * WINDOW * LENGTHS / (double)all);
	for (size_t i = 0; i < of_all; i++) {
		size_t first = i * LENGTHS / of_all, end = (i + 1) * LENGTHS / of_all, to = 0;
		double squares = 0.0;
		end = end > first ? end : first + 1;
		for (size_t part = first; part < end; part++)
			squares += (double)(lengths[part] * lengths[part]);
		for (size_t other = 1; other < draws; other++)
			to = sums[other] < sums[to] ? other : to;
		int64_t length = (int64_t)round(sqrt(squares / (double)(end - first)));
		sums[to] += length;
		if (to == draw)
			tokens[count++] = length;
	}
	int64_t sum = sums[draw];
	for (size_t i = 0; i < count; i++) {
		double length = floor((double)tokens[i] * (BATCH * (double)WINDOW / (double)sum) + 1e-6);
		tokens[i] = (int64_t)(length < WINDOW ? length : WINDOW);
	}
	return count;
}

/* The step time of a plan with one draw of documents, or infinity where they do not fit. */
static double draw_s(const struct wlb_model *model, const struct wlb_machine *machine, const struct wlb_plan *plan,
                     size_t draw, size_t draws)
{
	int64_t tokens[MOST_DOCUMENTS];
	int32_t bin_of[MOST_DOCUMENTS], bins = plan->micro_batches * plan->layout.dp;
	struct wlb_packed_span spans[MOST_DOCUMENTS];
	size_t count = draw_documents(draw, draws, tokens), at = 0;
	double windows = (double)BATCH / bins;
	int64_t space = (int64_t)ceil(WINDOW * (windows > 1.0 ? windows : 1.0) * 1.25);
	if (wlb_pack_balanced(model, tokens, count, bins, space, bin_of, NULL) < 0)
		return INFINITY;
	for (int32_t b = 0; b < bins; b++)
		for (size_t i = 0; i < count; i++)
			if (bin_of[i] == b)
				spans[at++] = (struct wlb_packed_span){.span = {.tokens = tokens[i]}, .micro_batch = b};
	struct wlb_step step = {.spans = spans, .count = count, .micro_batches = bins};
	struct wlb_machine whole = *machine;
	whole.gpus_per_node = machine->gpus_per_node / plan->layout.tp * plan->layout.tp;
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, plan);
	options.timeline = 0;
	return simulate(model, &whole, &options, &step).time.step_s;
}

/* The mean step time of a plan over draws that together have 128 documents, as far as they fit; infinity where none
 * does. */
static double step_s_of(const struct wlb_model *model, const struct wlb_machine *machine, const struct wlb_plan *plan)
{
	int64_t all = 0;
	double sum_s = 0.0, fitting = 0.0;
	for (int64_t i = 0; i < LENGTHS; i++)
		all += lengths[i];
	size_t draws = (size_t)ceil(128.0 / ((double)BATCH * WINDOW * LENGTHS / (double)all));
	for (size_t draw = 0; draw < draws; draw++) {
		double step_s = draw_s(model, machine, plan, draw, draws);
		sum_s += isfinite(step_s) ? step_s : 0.0;
		fitting += isfinite(step_s);
	}
	return fitting > 0.0 ? sum_s / fitting : INFINITY;
}

struct brute {
	int64_t count;
	double best_s;
};

/* Every plan that the rules of the search allow, by plain loops: their number, and the best where all fit. */
static struct brute try_all(const struct wlb_model *model, const struct wlb_machine *machine, int nodes, int all_fit)
{
	struct brute brute = {0, INFINITY};
	int gpus = machine->gpus_per_node, batch = BATCH;
	int experts = model->num_experts > 0 ? (int)model->num_experts : 1;
	for (int tp = 1; tp <= gpus; tp++)
		for (int cp = 1; model->num_attention_heads % tp == 0 && cp <= nodes * (gpus / tp); cp++)
			for (int pp = 1; pp <= model->num_hidden_layers && cp * pp <= nodes * (gpus / tp); pp++)
				for (int v = 1; v <= model->num_hidden_layers; v++) {
					int aligned = cp == 1 || gpus % (tp * cp) == 0 || tp * cp % gpus == 0;
					if (!aligned || (cp > 1 && 8192 % (2 * cp) != 0) ||
					    (cp > 1 && cp * 256 > 8192) || (v > 1 && pp == 1) ||
					    model->num_hidden_layers % (pp * v) != 0)
						continue;
					int dp = nodes * (gpus / tp) / (cp * pp);
					dp = dp < batch ? dp : batch;
					while (batch % dp != 0)
						dp--;
					int pairs = batch / dp * experts; /* of windows and an ep */
					for (int pair = 0; pair < pairs; pair++) {
						int windows = pair / experts + 1, ep = pair % experts + 1;
						int m = batch / (dp * windows);
						if (experts % ep != 0 || dp * cp % ep != 0)
							continue;
						if (batch % (dp * windows) != 0 || (v > 1 && m % pp != 0) ||
						    (windows > 4 && m < pp))
							continue;
						brute.count++;
						struct wlb_plan plan = plan_of(tp, cp, pp, dp, v, m);
						plan.ep = ep;
						double step_s = all_fit ? step_s_of(model, machine, &plan) : INFINITY;
						brute.best_s = step_s < brute.best_s ? step_s : brute.best_s;
					}
				}
	return brute;
}

static void check_candidate(const struct wlb_candidate *c, const struct wlb_model *model, int gpus_per_node, int gpus)
{
	struct wlb_error error;
	const struct wlb_layout *l = &c->plan.layout;
	assert_int_equal(wlb_plan_check(&c->plan, model, &error), 0);
	assert_int_equal(model->num_attention_heads % l->tp, 0);
	assert_true(l->tp <= gpus_per_node && l->pp <= model->num_hidden_layers);
	assert_int_equal(c->gpus, wlb_layout_ranks(l));
	assert_true(c->gpus <= gpus);
}

static void every_layout_of_a_small_machine_is_judged(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	static const int sizes[][2] = {{1, 4}, {2, 4}, {3, 4}, {2, 8}, {3, 2}};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		machine.gpus_per_node = sizes[i][1];
		machine.memory_bytes = i % 2 == 0 ? 80e9 : 6e9;
		if (i == 4)
			model = model_with_experts();
		struct wlb_search_options options = small_options(sizes[i][0], &sample);
		struct wlb_error error = {""};
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		assert_string_equal(error.message, "");
		assert_non_null(r);
		struct brute brute = try_all(&model, &machine, sizes[i][0], i % 2 == 0);
		/* Where memory is short, the micro-batches end with the first that does not fit. */
		assert_true(i % 2 == 0 ? r->tried == brute.count : r->tried <= brute.count);
		assert_true(i % 2 != 0 || fabs(r->ranked[0].step_s - brute.best_s) <= 1e-9 * brute.best_s);
		assert_int_equal(r->tried, r->no_memory + r->pruned + r->simulated + r->unexplored);
		assert_int_equal(r->misfit_count, r->no_memory);
		assert_int_equal(r->ranked_count, r->simulated);
		assert_true(i % 2 == 0 || r->no_memory > 0);
		for (size_t k = 0; k < r->ranked_count; k++) {
			check_candidate(&r->ranked[k], &model, machine.gpus_per_node, r->gpus);
			assert_true(r->ranked[k].step_s >= r->ranked[0].step_s);
			assert_true(r->ranked[k].bound_s <= r->ranked[k].step_s);
			assert_true(r->ranked[k].memory.reserved <= machine.memory_bytes);
		}
		for (size_t k = 0; k < r->misfit_count; k++) {
			check_candidate(&r->misfits[k], &model, machine.gpus_per_node, r->gpus);
			assert_true(r->misfits[k].missing_bytes > 0.0);
		}
		wlb_search_free(r);
	}
	free_step(&sample);
}

/* Megatron-LM asserts this of its options: batch, layers and window are divided without a remainder. */
static void check_megatron(const struct wlb_candidate *c, const struct wlb_model *model, int32_t batch, int64_t window)
{
	const struct wlb_plan *p = &c->plan;
	const struct wlb_layout *l = &p->layout;
	int64_t layers = model->num_hidden_layers + p->account_for_embedding + p->account_for_loss;
	assert_int_equal(batch % (l->dp * p->micro_batches), 0);
	assert_int_equal(layers % ((int64_t)l->pp * p->interleave), 0);
	assert_true(l->cp == 1 || window % (2 * l->cp) == 0);
	assert_true(p->interleave == 1 || p->micro_batches % l->pp == 0);
}

static void every_plan_can_run_in_megatron(void **state)
{
	(void)state;
	static const int32_t nodes[] = {1, 3, 7}, batches[] = {1, 12, 60, 64}, layers[] = {6, 7, 12};
	static const int64_t windows[] = {8192, 9000};
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	for (int i = 0; i < 3 * 4 * 3 * 2; i++) {
		struct wlb_model model = small_model();
		struct wlb_search_options options = small_options(nodes[i % 3], &sample);
		struct wlb_error error = {""};
		model.num_hidden_layers = layers[i / 12 % 3];
		options.global_batch = batches[i / 3 % 4];
		options.seq_length = windows[i / 36];
		options.most_simulated = 20;
		options.fixed.account_for_embedding = options.fixed.account_for_loss = -1;
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		assert_string_equal(error.message, "");
		for (size_t k = 0; k < r->ranked_count; k++)
			check_megatron(&r->ranked[k], &model, options.global_batch, options.seq_length);
		for (size_t k = 0; k < r->misfit_count; k++)
			check_megatron(&r->misfits[k], &model, options.global_batch, options.seq_length);
		wlb_search_free(r);
	}
	free_step(&sample);
}

/* Ranks and idle GPUs are all usable ones, each once; the ranks of a tensor-parallel group share a node. */
static void check_places(const struct wlb_search_result *r, const int32_t *usable, int32_t nodes, int gpus)
{
	int *taken = calloc((size_t)(nodes * gpus), sizeof(*taken)), tp = r->ranked[0].plan.layout.tp;
	assert_non_null(taken);
	assert_int_equal(r->ranks, r->ranked[0].gpus);
	assert_int_equal(r->ranks + r->idle, r->gpus);
	for (int32_t i = 0; i < r->gpus; i++) {
		int32_t node = i < r->ranks ? r->rank_node[i] : r->idle_node[i - r->ranks];
		int32_t gpu = i < r->ranks ? r->rank_gpu[i] : r->idle_gpu[i - r->ranks];
		assert_in_range(node, 0, nodes - 1);
		assert_true(gpu >= 0 && gpu < usable[node]);
		assert_int_equal(taken[node * gpus + gpu]++, 0);
		if (i < r->ranks)
			assert_int_equal(node, r->rank_node[i / tp * tp]);
	}
	free(taken);
}

static void uneven_nodes_get_the_layout_that_uses_what_is_there(void **state)
{
	(void)state;
	struct wlb_model model = llama_70b(); /* too large for tp 1 */
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_error error;
	for (int broken = 0; broken < 4; broken++) {
		int32_t usable[32];
		for (int n = 0; n < 32; n++)
			usable[n] = 8;
		usable[5] = broken * 2;
		usable[17] = broken == 3 ? 7 : 8;
		struct wlb_search_options options = small_options(32, &sample);
		options.gpus_of_node = usable;
		options.global_batch = 120;
		options.most_simulated = 50;
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		assert_non_null(r);
		assert_int_equal(r->gpus, 31 * 8 + 2 * broken - (broken == 3));
		assert_true(r->idle <= 16);
		assert_true(r->ranked[0].plan.layout.tp > 1);
		check_places(r, usable, 32, 8);
		wlb_search_free(r);
	}
	free_step(&sample);
}

static void ranks_follow_the_switches(void **state)
{
	(void)state;
	/* Slurm names nodes in one order, cables may go another: even nodes on one leaf, odd ones on the other. */
	static const int32_t even[] = {0, 2, 4, 6}, odd[] = {1, 3, 5, 7}, leaves[] = {1, 2};
	const struct wlb_switch switches[] = {
		{"root", leaves, 2, NULL, 0}, {"even", NULL, 0, even, 4}, {"odd", NULL, 0, odd, 4}};
	struct wlb_topology topology = {switches, 3};
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	machine.switch_taper = 0.1;
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = small_options(8, &sample);
	options.topology = &topology;
	options.global_batch = 64;
	struct wlb_error error;
	struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
	assert_non_null(r);
	for (int32_t i = 1; i < r->ranks; i++)
		assert_true(r->rank_node[i] % 2 >= r->rank_node[i - 1] % 2);
	wlb_search_free(r);
	free_step(&sample);
}

static void assert_search_fails(const struct wlb_model *model, const struct wlb_machine *machine,
                                const struct wlb_search_options *options, const char *part)
{
	struct wlb_error error = {""};
	assert_null(wlb_search(model, machine, options, &error));
	if (strstr(error.message, part) == NULL)
		fail_msg("'%s' does not say '%s'", error.message, part);
}

static void what_cannot_be_searched_is_refused(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, 4);
	struct wlb_search_options good = small_options(2, &sample), bad = good;
	bad.nodes = 0;
	assert_search_fails(&model, &machine, &bad, "nodes is 0");
	bad = good;
	bad.samples = 0;
	assert_search_fails(&model, &machine, &bad, "no document");
	bad = good;
	bad.seq_length = 8191;
	assert_search_fails(&model, &machine, &bad, "8192 tokens");
	static const int64_t uncut[] = {INT64_C(1) << 40};
	struct wlb_step longer = equal_step(1, uncut, 1);
	bad = small_options(2, &longer);
	assert_search_fails(&model, &machine, &bad, "1099511627776 tokens: at most seq_length");
	free_step(&longer);
	bad = good;
	bad.max_length_ratio = NAN;
	assert_search_fails(&model, &machine, &bad, "max_length_ratio");
	bad = worker_options(2, &sample);
	bad.seq_length = 1 << 20;
	bad.global_batch = 2048;
	assert_search_fails(&model, &machine, &bad, "seq_length 1048576 x global_batch_size 2048: for wlb-worker");
	int32_t usable[] = {8, 9};
	bad = good;
	bad.gpus_of_node = usable;
	assert_search_fails(&model, &machine, &bad, "node 1 has 9 GPUs");
	usable[0] = usable[1] = 0;
	assert_search_fails(&model, &machine, &bad, "none of the 2 nodes");
	machine.memory_bytes = 1e8;
	assert_search_fails(&model, &machine, &good, "misses least");
	free_step(&sample);
}

/* Every plan of a search, also those that do not fit, has what is fixed. */
/* 4 windows on 3 replicas: a trainer that is given 2 windows in a micro-batch allocates 2, and not the 4/3 of the
 * share.
 */
static void memory_is_charged_for_whole_windows(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	machine.gpus_per_node = 3;
	struct wlb_search_options options = worker_options(1, &sample);
	options.global_batch = 4;
	options.charge_limit = 1;
	for (int32_t windows = 1; windows <= 2; windows++) {
		struct wlb_error error = {""};
		options.fixed = (struct wlb_search_fixed){
			.tp = 1, .cp = 1, .pp = 1, .dp = 3, .micro_batch_windows = windows, .recompute = -1};
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		assert_string_equal(error.message, "");
		assert_int_equal(r->ranked_count, 1);
		assert_int_equal(r->ranked[0].plan.micro_batches, windows == 1 ? 2 : 1);
		assert_int_equal(r->ranked[0].micro_batch_tokens, (int64_t)(windows * WINDOW * 1.25));
		wlb_search_free(r);
	}
	free_step(&sample);
}

/* A fixed ep makes the search leave out replicas that it does not divide. */
static void a_fixed_ep_divides_the_ranks(void **state)
{
	(void)state;
	struct wlb_model model = model_with_experts(), dense = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	machine.gpus_per_node = 6;
	machine.node_link.bytes_per_s = 5e9; /* rows on their way to experts take most of a step */
	struct wlb_search_options options = small_options(1, &sample);
	struct wlb_error error = {""};
	options.global_batch = 12;
	options.fixed.ep = 4;
	options.fixed.tp = options.fixed.cp = options.fixed.pp = 1;
	for (int hidden = 0; hidden <= 1; hidden++) {
		options.cost.exchange_processors = hidden ? 32 : 0;
		machine.node_link.bytes_per_s = hidden ? 2e10 : 5e9;
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		assert_string_equal(error.message, "");
		for (size_t k = 0; k < r->ranked_count; k++) {
			assert_true(r->ranked[k].plan.ep == 4 && r->ranked[k].plan.layout.dp == 4); /* of 6 */
			assert_true(r->ranked[k].bound_s <= r->ranked[k].step_s);
		}
		wlb_search_free(r);
	}
	options.fixed.ep = 3;
	assert_search_fails(&model, &machine, &options, "ep=3, which is fixed");
	assert_search_fails(&model, &machine, &options, "ep must divide num_experts and dp x cp");
	options.fixed.ep = 5;
	assert_search_fails(&model, &machine, &options, "ep=5 is fixed: it must be from 1 to num_experts");
	assert_search_fails(&dense, &machine, &options, "ep=5 is fixed: it must be from 1 to num_experts");
	free_step(&sample);
}

/* Rows that are recomputed are not sent back: their way is most of a step, and in its bound no more than in it. */
static void recomputed_rows_that_stay_are_in_no_bound(void **state)
{
	(void)state;
	struct wlb_model model = model_with_experts();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	machine.node_link.bytes_per_s = 1e8;
	struct wlb_search_options options = small_options(1, &sample);
	struct wlb_error error = {""};
	options.fixed.ep = 4;
	options.fixed.tp = options.fixed.cp = options.fixed.pp = 1;
	options.fixed.recompute = WLB_RECOMPUTE_FULL;
	options.cost.early_stop = options.cost.weighted_experts = 1;
	struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
	assert_string_equal(error.message, "");
	assert_true(r->ranked_count > 0);
	for (size_t k = 0; k < r->ranked_count; k++)
		assert_true(r->ranked[k].bound_s <= r->ranked[k].step_s);
	wlb_search_free(r);
	free_step(&sample);
}

/* What is kept of a layout for its bounds is not that of another ep. */
static void each_ep_has_its_own_bound(void **state)
{
	(void)state;
	struct wlb_model model = model_with_experts();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = small_options(1, &sample);
	struct wlb_error error = {""};
	machine.gpus_per_node = 4;
	options.near_equal = 1.0; /* none is left out for its bound */
	options.fixed = (struct wlb_search_fixed){
		.tp = 1, .cp = 1, .pp = 1, .dp = 4, .micro_batch_windows = 1, .recompute = WLB_RECOMPUTE_NONE};
	struct wlb_search_result *all = wlb_search(&model, &machine, &options, &error);
	assert_string_equal(error.message, "");
	assert_int_equal(all->ranked_count, 3);
	for (size_t k = 0; k < all->ranked_count; k++) {
		options.fixed.ep = all->ranked[k].plan.ep;
		struct wlb_search_result *alone = wlb_search(&model, &machine, &options, &error);
		assert_string_equal(error.message, "");
		assert_int_equal(alone->ranked_count, 1);
		assert_true(all->ranked[k].bound_s == alone->ranked[0].bound_s);
		wlb_search_free(alone);
	}
	wlb_search_free(all);
	free_step(&sample);
}

/* Attention is most of a step, and hides all of what its keys take, or half. The bound is that of the step, and above
 * no step. */
static void keys_are_hidden_in_a_bound_as_in_a_step(void **state)
{
	(void)state;
	static const int64_t window[] = {131072};
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, window, 1);
	struct wlb_search_options options = small_options(1, &sample);
	struct wlb_error error = {""};
	machine.gpus_per_node = 2;
	machine.memory_bytes = 1e13;
	options.seq_length = window[0];
	options.global_batch = 1;
	options.cost.cp_overlap = (struct wlb_overlap){1.0, 1.0};
	options.fixed = (struct wlb_search_fixed){.tp = 1, .cp = 2, .pp = 1, .dp = 1, .recompute = WLB_RECOMPUTE_NONE};
	for (int slow = 0; slow < 2; slow++) {
		machine.node_link.bytes_per_s = slow ? 8e9 : 24e9;
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		assert_string_equal(error.message, "");
		const struct wlb_candidate *c = &r->ranked[0];
		assert_true(c->time.cp_s > 0.2 * c->step_s ? slow : c->time.cp_s < 1e-3 * c->step_s && !slow);
		assert_true(c->bound_s <= c->step_s && c->bound_s > 0.9 * c->step_s);
		wlb_search_free(r);
	}
	free_step(&sample);
}

/* On 3 stages 3 windows are tried, which divide the batch, and of more than 4 those that leave each stage one. */
static void a_micro_batch_has_any_few_windows(void **state)
{
	(void)state;
	static const int expected[13] = {[3] = 1, [4] = 1, [6] = 1, [12] = 1};
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = small_options(1, &sample);
	struct wlb_error error = {""};
	int tried[13] = {0};
	machine.gpus_per_node = 3;
	options.global_batch = 12;
	options.near_equal = 1.0;
	options.fixed = (struct wlb_search_fixed){
		.tp = 1, .cp = 1, .pp = 3, .dp = 1, .interleave = 1, .recompute = WLB_RECOMPUTE_NONE};
	struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
	assert_string_equal(error.message, "");
	assert_int_equal(r->pruned + r->unexplored, 0);
	for (size_t k = 0; k < r->ranked_count; k++)
		tried[r->ranked[k].plan.micro_batches] = 1;
	assert_memory_equal(tried, expected, sizeof(tried));
	wlb_search_free(r);
	free_step(&sample);
}

static void what_is_fixed_is_held(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	machine.gpus_per_node = 4;
	machine.memory_bytes = 10e9;
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	static const struct wlb_search_fixed cases[] = {
		{.tp = 2, .recompute = -1},
		{.cp = 3, .recompute = -1}, /* fills no node */
		{.pp = 3, .recompute = -1},
		{.dp = 2, .recompute = -1},
		{.interleave = 2, .recompute = -1},
		{.micro_batch_windows = 3, .recompute = -1},
		{.recompute = WLB_RECOMPUTE_FULL},
		{.recompute = WLB_RECOMPUTE_FULL, .recompute_layers = 2},
		{.recompute = WLB_RECOMPUTE_NONE},
		{.tp = 2, .cp = 2, .pp = 1, .dp = 1, .interleave = 1, .micro_batch_windows = 8, .recompute = -1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wlb_search_fixed *fixed = &cases[i];
		struct wlb_search_options options = worker_options(2, &sample);
		options.fixed = *fixed;
		struct wlb_error error = {""};
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		assert_string_equal(error.message, "");
		for (size_t k = 0; k < r->ranked_count + r->misfit_count; k++) {
			const struct wlb_candidate *c =
				k < r->ranked_count ? &r->ranked[k] : &r->misfits[k - r->ranked_count];
			const struct wlb_layout *l = &c->plan.layout;
			assert_true((fixed->tp == 0 || l->tp == fixed->tp) && (fixed->cp == 0 || l->cp == fixed->cp));
			assert_true((fixed->pp == 0 || l->pp == fixed->pp) && (fixed->dp == 0 || l->dp == fixed->dp));
			assert_true(fixed->interleave == 0 || c->plan.interleave == fixed->interleave);
			assert_true(fixed->recompute < 0 || (int)c->plan.recompute == fixed->recompute);
			assert_true(fixed->recompute < 0 || c->plan.recompute_layers == fixed->recompute_layers);
			int32_t share = (BATCH + l->dp - 1) / l->dp, windows = fixed->micro_batch_windows;
			int32_t m = windows > 0 ? (share + windows - 1) / windows : 0;
			m = c->plan.interleave > 1 ? (m + l->pp - 1) / l->pp * l->pp : m;
			assert_true(windows == 0 || c->plan.micro_batches == m);
		}
		wlb_search_free(r);
	}
	free_step(&sample);
}

/* The plan that recomputes one operation or one layer of each chunk less. */
static struct wlb_plan recompute_less(const struct wlb_plan *plan, const struct wlb_model *model)
{
	struct wlb_plan less = *plan;
	int32_t most = 0;
	for (int32_t stage = 0; stage < plan->layout.pp; stage++)
		for (int32_t chunk = 0; chunk < plan->interleave; chunk++) {
			int32_t layers = (int32_t)wlb_plan_layers(plan, model, stage, chunk);
			most = layers > most ? layers : most;
		}
	int32_t layers = plan->recompute_layers > 0 ? plan->recompute_layers : most;
	less.recompute_layers = 0;
	if (plan->recompute == WLB_RECOMPUTE_FULL && layers > 1)
		less.recompute_layers = layers - 1;
	else
		less.recompute--;
	return less;
}

static double most_bytes(const struct wlb_search_options *options, const struct wlb_model *model,
                         const struct wlb_machine *machine, const struct wlb_plan *plan, int64_t tokens)
{
	double most = 0.0;
	for (int32_t stage = 0; stage < plan->layout.pp; stage++)
		most = fmax(most, wlb_memory_stage_of(plan, model, machine, &options->cost, stage, tokens, 0).reserved);
	return most;
}

/* Searches with less and less memory: what is recomputed is the least that fits. Counts the plans by `seen`: kinds of
 * recomputation, and last those that recompute some layers of a chunk. */
static void search_short_of_memory(const struct wlb_search_options *options, int64_t *seen)
{
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_error error = {""};
	for (double bytes = 80e9; bytes > 1e8; bytes *= 0.95) {
		machine.memory_bytes = bytes;
		struct wlb_search_result *r = wlb_search(&model, &machine, options, &error);
		for (size_t k = 0; r != NULL && k < r->ranked_count; k++) {
			const struct wlb_candidate *c = &r->ranked[k];
			seen[c->plan.recompute]++;
			assert_true(c->bound_s <= c->step_s);
			seen[WLB_RECOMPUTE_FULL + 1] += c->plan.recompute_layers > 0;
			if (c->plan.recompute == WLB_RECOMPUTE_NONE)
				continue;
			struct wlb_plan less = recompute_less(&c->plan, &model);
			assert_true(most_bytes(options, &model, &machine, &less, c->micro_batch_tokens) > bytes);
		}
		wlb_search_free(r);
	}
}

static void no_more_is_recomputed_than_must_be(void **state)
{
	(void)state;
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = small_options(1, &sample);
	const struct wlb_machine machine = h100();
	int64_t seen[WLB_RECOMPUTE_FULL + 2] = {0};
	options.cost.early_stop = 1;
	search_short_of_memory(&options, seen);
	assert_true(seen[WLB_RECOMPUTE_NONE] > 0 && seen[WLB_RECOMPUTE_SELECTIVE] == 0); /* attention is fused */
	assert_true(seen[WLB_RECOMPUTE_FULL] > seen[WLB_RECOMPUTE_FULL + 1] && seen[WLB_RECOMPUTE_FULL + 1] > 0);
	memset(seen, 0, sizeof(seen));
	wlb_cost_options_worker(&options.cost, &machine);
	options.charge_limit = 1;
	search_short_of_memory(&options, seen);
	assert_true(seen[WLB_RECOMPUTE_NONE] > 0 && seen[WLB_RECOMPUTE_SELECTIVE] > 0);
	assert_true(seen[WLB_RECOMPUTE_FULL] > seen[WLB_RECOMPUTE_FULL + 1] && seen[WLB_RECOMPUTE_FULL + 1] > 0);
	free_step(&sample);
}

/* Sets of modules are tried in their order before whole layers, but those of modules that the model has not. */
static void sets_of_the_program_are_tried_before_whole_layers(void **state)
{
	(void)state;
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = small_options(1, &sample);
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	const int32_t sets[] = {WLB_RECOMPUTE_MOE_ACT | WLB_RECOMPUTE_LAYERNORM, WLB_RECOMPUTE_LAYERNORM,
	                        WLB_RECOMPUTE_LAYERNORM | WLB_RECOMPUTE_MLP};
	int64_t seen[WLB_RECOMPUTE_ACT] = {0};
	struct wlb_error error = {""};
	memcpy(options.cost.recompute_sets, sets, sizeof(sets));
	for (double bytes = 80e9; bytes > 1e8; bytes *= 0.95) {
		machine.memory_bytes = bytes;
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		for (size_t k = 0; r != NULL && k < r->ranked_count; k++) {
			const struct wlb_candidate *c = &r->ranked[k];
			struct wlb_plan less = c->plan;
			seen[c->plan.recompute]++;
			assert_true(c->bound_s <= c->step_s);
			if ((int32_t)c->plan.recompute != sets[1] && (int32_t)c->plan.recompute != sets[2])
				continue;
			less.recompute =
				(int32_t)c->plan.recompute == sets[1] ? WLB_RECOMPUTE_NONE : WLB_RECOMPUTE_LAYERNORM;
			assert_true(most_bytes(&options, &model, &machine, &less, c->micro_batch_tokens) > bytes);
		}
		wlb_search_free(r);
	}
	assert_true(seen[WLB_RECOMPUTE_NONE] > 0 && seen[sets[1]] > 0 && seen[sets[2]] > 0);
	assert_true(seen[WLB_RECOMPUTE_FULL] > 0 && seen[sets[0]] == 0);
	free_step(&sample);
}

static void every_usable_gpu_has_a_rank_where_that_is_asked(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	machine.gpus_per_node = 4;
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = worker_options(7, &sample);
	struct wlb_error error = {""};
	options.every_gpu = 1;
	struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
	assert_string_equal(error.message, "");
	for (size_t k = 0; k < r->ranked_count; k++)
		assert_int_equal(r->ranked[k].gpus, 28);
	assert_int_equal(r->idle, 0);
	wlb_search_free(r);
	free_step(&sample);
}

/* Documents that fill windows evenly make no micro-batch longer than its share, whatever the ratio allows: memory is
 * charged for that, unless the program allocates the limit. */
static void memory_is_charged_for_the_longest_micro_batch(void **state)
{
	(void)state;
	static const int64_t even[] = {1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024};
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	machine.gpus_per_node = 4;
	struct wlb_step sample = equal_step(1, even, 8);
	struct wlb_error error = {""};
	double bytes[2];
	for (int limit = 0; limit < 2; limit++) {
		struct wlb_search_options options = small_options(1, &sample);
		options.charge_limit = limit;
		options.fixed =
			(struct wlb_search_fixed){.tp = 1, .cp = 1, .pp = 1, .micro_batch_windows = 2, .recompute = 1};
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		assert_string_equal(error.message, "");
		assert_int_equal(r->ranked[0].micro_batch_tokens, limit ? WINDOW * 2 * 5 / 4 : WINDOW * 2);
		bytes[limit] = r->ranked[0].memory.reserved;
		wlb_search_free(r);
	}
	assert_true(bytes[1] > 1.1 * bytes[0]);
	/* Between the two a plan fits only by what packing makes. */
	machine.memory_bytes = (bytes[0] + bytes[1]) / 2.0;
	struct wlb_search_options options = small_options(1, &sample);
	options.fixed = (struct wlb_search_fixed){.tp = 1, .cp = 1, .pp = 1, .micro_batch_windows = 2, .recompute = 1};
	struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
	assert_non_null(r);
	wlb_search_free(r);
	options.charge_limit = 1;
	assert_search_fails(&model, &machine, &options, "misses least");
	free_step(&sample);
}

static int is_power(int n)
{
	return (n & (n - 1)) == 0;
}

/* Within the tolerance the plan with powers of two is first; all others stay by step time. Of plans that do not fit
 * those come first too, each layout once. */
static void usual_layouts_come_first_among_near_equals(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	machine.gpus_per_node = 3;
	machine.memory_bytes = 8.5e9;
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = small_options(1, &sample);
	options.fixed.dp = 1;
	struct wlb_error error = {""};
	struct wlb_search_result *fastest = wlb_search(&model, &machine, &options, &error);
	assert_string_equal(error.message, "");
	assert_int_equal(fastest->preferred, 0);
	assert_true(fastest->fastest_s == fastest->ranked[0].step_s);
	const struct wlb_layout *best = &fastest->ranked[0].plan.layout;
	assert_false(is_power(best->tp) && is_power(best->cp) && is_power(best->pp));
	options.near_equal = 1.0;
	struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
	const struct wlb_layout *usual = &r->ranked[0].plan.layout;
	assert_true(is_power(usual->tp) && is_power(usual->cp) && is_power(usual->pp));
	assert_int_equal(r->preferred, 1);
	assert_true(r->fastest_s == fastest->fastest_s && r->ranked[1].step_s == r->fastest_s);
	for (size_t k = 2; k < r->ranked_count; k++)
		assert_true(r->ranked[k].step_s >= r->ranked[k - 1].step_s);
	assert_true(r->misfit_count > 2);
	for (size_t k = 0; k < 2; k++) {
		const struct wlb_layout *l = &r->misfits[k].plan.layout;
		assert_true(is_power(l->tp) && is_power(l->cp) && is_power(l->pp));
	}
	assert_true(memcmp(&r->misfits[0].plan.layout, &r->misfits[1].plan.layout, sizeof(struct wlb_layout)) != 0);
	assert_true(r->ranked[0].gpus < 3);
	options.prefer_every_gpu = 1;
	struct wlb_search_result *busy = wlb_search(&model, &machine, &options, &error);
	assert_true(busy->ranked[0].gpus == 3 && busy->idle == 0);
	assert_true(busy->fastest_s == fastest->fastest_s);
	wlb_search_free(fastest);
	wlb_search_free(r);
	wlb_search_free(busy);
	free_step(&sample);
}

/* Fewer candidates are the first of more, and all plans are counted, also those that were not kept. */
static void fewer_candidates_are_the_first_of_more(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	machine.memory_bytes = 4.5e9;
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = small_options(4, &sample);
	struct wlb_error error = {""};
	options.keep = 1 << 16;
	struct wlb_search_result *all = wlb_search(&model, &machine, &options, &error);
	assert_string_equal(error.message, "");
	assert_int_equal(all->misfit_count, all->no_memory);
	for (options.keep = 1; options.keep <= 40; options.keep++) {
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		assert_int_equal(r->tried, all->tried);
		assert_int_equal(r->no_memory, all->no_memory);
		assert_true(r->misfit_count == all->misfit_count || r->misfit_count == (size_t)options.keep);
		for (size_t k = 0; k < r->misfit_count; k++)
			assert_memory_equal(&r->misfits[k], &all->misfits[k], sizeof(r->misfits[k]));
		assert_memory_equal(&r->ranked[0], &all->ranked[0], sizeof(r->ranked[0]));
		wlb_search_free(r);
	}
	wlb_search_free(all);
	free_step(&sample);
}

/* 12 layers on 2 stages: 5 chunks of a stage have 2 layers at most, as 4 have, and 13 layers in as many too. */
static void chunks_of_each_size_are_tried(void **state)
{
	(void)state;
	static const int expected[8] = {0, 1, 1, 1, 1, 0, 1, 0};
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = worker_options(1, &sample);
	struct wlb_error error = {""};
	int tried[8] = {0};
	machine.gpus_per_node = 2;
	model.num_hidden_layers = 12;
	options.fixed.pp = 2;
	options.keep = 1000;
	options.near_equal = 1.0;
	struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
	assert_string_equal(error.message, "");
	assert_int_equal(r->pruned + r->unexplored, 0);
	for (size_t k = 0; k < r->ranked_count; k++)
		tried[r->ranked[k].plan.interleave] = 1;
	assert_memory_equal(tried, expected, sizeof(tried));
	wlb_search_free(r);
	free_step(&sample);
}

/* 9 layers on 4 stages: 3 less at the ends, of which the last, with the head, has more. wlb-worker has no such option.
 */
static void stages_at_the_ends_have_less_layers(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = worker_options(1, &sample);
	struct wlb_error error = {""};
	machine.gpus_per_node = 4;
	model.num_hidden_layers = 9;
	options.fixed = (struct wlb_search_fixed){.pp = 4, .recompute = -1};
	wlb_cost_options_init(&options.cost);
	options.charge_limit = 0;
	assert_search_fails(&model, &machine, &options, "must divide num_hidden_layers");
	options.fixed.account_for_embedding = options.fixed.account_for_loss = -1;
	struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
	assert_string_equal(error.message, "");
	for (size_t k = 0; k < r->ranked_count; k++) {
		const struct wlb_plan *plan = &r->ranked[k].plan;
		assert_true(plan->account_for_embedding == 1 && plan->account_for_loss == 2 && plan->interleave == 1);
		assert_int_equal(wlb_plan_stage_layers(plan, &model, 0), 2);
		assert_int_equal(wlb_plan_stage_layers(plan, &model, 1), 3);
		assert_int_equal(wlb_plan_stage_layers(plan, &model, 3), 1);
	}
	wlb_search_free(r);
	wlb_cost_options_worker(&options.cost, &machine);
	r = wlb_search(&model, &machine, &options, &error);
	assert_string_equal(error.message, "");
	for (size_t k = 0; k < r->ranked_count; k++)
		assert_true(r->ranked[k].plan.account_for_embedding <= 1 && r->ranked[k].plan.account_for_loss <= 1);
	wlb_search_free(r);
	free_step(&sample);
}

/* With 6 layers, 8 chunks exist only where the embedding and the head count; left to the search they count where that
 * is no slower. */
static void embedding_and_head_count_where_that_helps(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	machine.gpus_per_node = 4;
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = worker_options(1, &sample);
	struct wlb_error error = {""};
	options.fixed.pp = 4;
	struct wlb_search_result *without = wlb_search(&model, &machine, &options, &error);
	assert_non_null(without);
	for (size_t k = 0; k < without->ranked_count; k++)
		assert_false(without->ranked[k].plan.account_for_embedding || without->ranked[k].plan.account_for_loss);
	options.fixed.account_for_embedding = options.fixed.account_for_loss = -1;
	struct wlb_search_result *free_to = wlb_search(&model, &machine, &options, &error);
	assert_true(free_to->ranked[0].step_s < without->ranked[0].step_s);
	assert_true(free_to->ranked[0].plan.account_for_loss);
	options.fixed.interleave = 2;
	struct wlb_search_result *eight = wlb_search(&model, &machine, &options, &error);
	assert_string_equal(error.message, "");
	assert_true(eight->ranked[0].plan.account_for_embedding && eight->ranked[0].plan.account_for_loss);
	options.fixed.account_for_embedding = 0;
	assert_search_fails(&model, &machine, &options, "which is fixed");
	options.fixed.account_for_embedding = 2;
	assert_search_fails(&model, &machine, &options, "account_for_embedding is 2");
	wlb_search_free(without);
	wlb_search_free(free_to);
	wlb_search_free(eight);
	free_step(&sample);
}

/* Sharing the head over the stages is tried where the caller leaves it open, and chosen where a step is shorter. */
static void the_head_is_shared_where_that_helps(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = small_options(1, &sample);
	struct wlb_error error = {""};
	model.vocab_size = 400000;
	options.fixed.pp = 2;
	struct wlb_search_result *last = wlb_search(&model, &machine, &options, &error);
	options.fixed.shared_head = -1;
	struct wlb_search_result *open = wlb_search(&model, &machine, &options, &error);
	options.fixed.shared_head = 1;
	struct wlb_search_result *shared = wlb_search(&model, &machine, &options, &error);
	assert_string_equal(error.message, "");
	for (size_t k = 0; k < last->ranked_count; k++)
		assert_int_equal(last->ranked[k].plan.shared_head, 0);
	for (size_t k = 0; k < shared->ranked_count; k++)
		assert_int_equal(shared->ranked[k].plan.shared_head, 1);
	assert_int_equal(open->tried, last->tried + shared->tried);
	assert_int_equal(open->ranked[0].plan.shared_head, 1);
	assert_true(open->ranked[0].step_s < last->ranked[0].step_s);
	assert_true(open->ranked[0].step_s == shared->ranked[0].step_s);
	options.fixed.shared_head = 2;
	assert_search_fails(&model, &machine, &options, "shared_head is 2");
	wlb_search_free(last);
	wlb_search_free(open);
	wlb_search_free(shared);
	free_step(&sample);
}

/* Utilization and tokens a second belong to the step time, and agree with the simulator where all is simulated. */
static void rates_belong_to_the_step_time(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	machine.gpus_per_node = 4;
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_error error = {""};
	double utilization[2];
	for (int large = 0; large < 2; large++) {
		struct wlb_search_options options = small_options(1, &sample);
		options.global_batch = large ? 4096 : BATCH;
		options.fixed = (struct wlb_search_fixed){
			.tp = 2, .cp = 1, .pp = 1, .dp = 2, .micro_batch_windows = 1, .recompute = 1};
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		assert_string_equal(error.message, "");
		const struct wlb_candidate *c = &r->ranked[0];
		assert_true(fabs(c->tokens_per_s * c->step_s / ((double)options.global_batch * WINDOW) - 1.0) < 1e-9);
		utilization[large] = c->utilization;
		wlb_search_free(r);
	}
	/* 4096 windows are simulated in part; the optimizer's share of a step is smaller. */
	assert_true(utilization[0] > 0.1 && utilization[0] < utilization[1]);
	assert_true(utilization[1] < 1.2 * utilization[0]);
	free_step(&sample);
}

/* The remedies are options of the trainer that the plan is for. */
static void what_does_not_fit_names_what_can_be_changed(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options options = small_options(2, &sample);
	machine.memory_bytes = 1e8;
	assert_search_fails(&model, &machine, &options,
	                    "more nodes, a shorter --seq-length, or a higher stage of ZeRO");
	wlb_cost_options_worker(&options.cost, &machine);
	assert_search_fails(&model, &machine, &options, "shorter --seq-length, or a higher stage of ZeRO");
	options.zero_stage = 2;
	assert_search_fails(&model, &machine, &options, "a rank has 0.1 GB; use more nodes or a shorter --seq-length");
	free_step(&sample);
}

/* -1: left to the search. Of 6 layers at most 5 count as embedding or loss. */
static void what_counts_as_layers_has_limits(void **state)
{
	(void)state;
	static const struct {
		int embedding, loss, interleave, pp, held;
	} cases[] = {{-2, 0, 1, 2, 0}, {0, -2, 1, 2, 0}, {6, 0, 1, 2, 0},  {0, 6, 1, 2, 0},
	             {2, -1, 1, 2, 0}, {-1, 2, 1, 2, 0}, {2, 0, 0, 2, 0},  {0, 2, 2, 2, 0},
	             {2, 0, 1, 1, 0},  {0, 2, 1, 0, 0},  {5, 1, 1, 2, 1},  {1, 5, 1, 2, 1},
	             {2, 0, 1, 2, 1},  {0, 2, 1, 2, 1},  {1, -1, 0, 0, 1}, {-1, -1, 0, 0, 1}};
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_search_options options = small_options(1, &sample);
		struct wlb_error error = {""};
		options.fixed = (struct wlb_search_fixed){.tp = 2,
		                                          .pp = cases[i].pp,
		                                          .interleave = cases[i].interleave,
		                                          .account_for_embedding = cases[i].embedding,
		                                          .account_for_loss = cases[i].loss,
		                                          .recompute = -1};
		struct wlb_search_result *r = wlb_search(&model, &machine, &options, &error);
		assert_int_equal(r != NULL, cases[i].held);
		assert_int_equal(r == NULL, strstr(error.message, "each must be -1, 0 or 1, or both 0 to 5") != NULL);
		wlb_search_free(r);
	}
	free_step(&sample);
}

static void what_cannot_be_held_is_refused(void **state)
{
	(void)state;
	struct wlb_model model = small_model();
	struct wlb_machine machine = h100();
	struct wlb_step sample = equal_step(1, lengths, LENGTHS);
	struct wlb_search_options good = small_options(2, &sample), bad = good;
	bad.fixed.tp = 16;
	assert_search_fails(&model, &machine, &bad,
	                    "tp=16 is fixed: it must be from 1 to the usable GPUs of a node, 8");
	bad.fixed.tp = 8;
	assert_search_fails(&model, &machine, &bad, "tp=8 is fixed: it must divide num_attention_heads, 12");
	assert_search_fails(&model, &machine, &bad, "use tp=6"); /* and not 12, which no node has GPUs for */
	bad.fixed.tp = 5;
	assert_search_fails(&model, &machine, &bad, "use tp=4 or tp=6");
	bad = good;
	bad.fixed.pp = 7;
	assert_search_fails(&model, &machine, &bad, "pp=7 is fixed: it must be from 1 to num_hidden_layers, 6");
	bad = good;
	bad.fixed.dp = 17;
	assert_search_fails(&model, &machine, &bad, "dp=17 is fixed");
	bad.fixed = (struct wlb_search_fixed){.tp = 4, .pp = 5, .recompute = -1};
	assert_search_fails(&model, &machine, &bad, "tp=4,pp=5 is fixed: its product is 20 and there are 16");
	bad.fixed = (struct wlb_search_fixed){.pp = 1, .interleave = 2, .recompute = -1};
	assert_search_fails(&model, &machine, &bad, "interleave above 1 needs pp above 1");
	bad.fixed = (struct wlb_search_fixed){.pp = 4, .interleave = 2, .recompute = -1};
	assert_search_fails(&model, &machine, &bad, "has pp=4,interleave=2, which is fixed");
	bad.fixed = (struct wlb_search_fixed){.recompute = 3};
	assert_search_fails(&model, &machine, &bad, "recompute is 3");
	bad.fixed = (struct wlb_search_fixed){.recompute = WLB_RECOMPUTE_SELECTIVE, .recompute_layers = 2};
	assert_search_fails(&model, &machine, &bad, "recompute_layers 2 is fixed");
	bad.fixed = (struct wlb_search_fixed){.micro_batch_windows = 17, .recompute = -1};
	assert_search_fails(&model, &machine, &bad,
	                    "micro-batch-size=17 is fixed: it must be from 1 to --global-batch-size, 16");
	bad.fixed = (struct wlb_search_fixed){.dp = 3, .recompute = -1};
	assert_search_fails(&model, &machine, &bad, "has dp=3, which is fixed");
	bad = worker_options(2, &sample);
	bad.fixed = (struct wlb_search_fixed){.dp = 3, .recompute = -1};
	bad.every_gpu = 1;
	assert_search_fails(&model, &machine, &bad, "16 GPUs has dp=3, which is fixed");
	assert_search_fails(&model, &machine, &bad, "dp not global_batch_size, 16, and cp not 32, since seq_length");
	assert_search_fails(&model, &machine, &bad, "start 15 ranks, or use wlb run, which leaves ranks idle");
	free_step(&sample);
}

static void a_bad_tree_is_refused(void **state)
{
	(void)state;
	static const int32_t nodes[] = {0, 1}, self[] = {0}, far[] = {7};
	struct wlb_error error;
	int32_t order[4], leaf[4];
	struct wlb_switch one[] = {{"a", NULL, 0, nodes, 2}, {"b", NULL, 0, nodes, 2}};
	assert_int_equal(wlb_topology_order(&(struct wlb_topology){one, 2}, 4, order, leaf, &error), -1);
	assert_non_null(strstr(error.message, "switch b has node 0"));
	assert_int_equal(wlb_topology_order(&(struct wlb_topology){one, 1}, 4, order, leaf, &error), 0);
	assert_true(order[3] == 3 && leaf[1] == 0 && leaf[2] == -1);
	assert_int_equal(wlb_topology_order(&(struct wlb_topology){one, 1}, 1, order, leaf, &error), -1);
	struct wlb_switch ring[] = {{"a", self, 1, NULL, 0}};
	assert_int_equal(wlb_topology_order(&(struct wlb_topology){ring, 1}, 4, order, leaf, &error), -1);
	assert_non_null(strstr(error.message, "below itself"));
	ring[0].switches = far;
	assert_int_equal(wlb_topology_order(&(struct wlb_topology){ring, 1}, 4, order, leaf, &error), -1);
	assert_non_null(strstr(error.message, "switch number 7"));
	assert_int_equal(wlb_topology_order(NULL, 4, order, leaf, &error), 0);
	assert_true(order[0] == 0 && order[3] == 3 && leaf[0] == -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_head_is_shared_where_that_helps),
		cmocka_unit_test(every_layout_of_a_small_machine_is_judged),
		cmocka_unit_test(every_plan_can_run_in_megatron),
		cmocka_unit_test(uneven_nodes_get_the_layout_that_uses_what_is_there),
		cmocka_unit_test(ranks_follow_the_switches),
		cmocka_unit_test(what_cannot_be_searched_is_refused),
		cmocka_unit_test(memory_is_charged_for_whole_windows),
		cmocka_unit_test(what_is_fixed_is_held),
		cmocka_unit_test(a_fixed_ep_divides_the_ranks),
		cmocka_unit_test(recomputed_rows_that_stay_are_in_no_bound),
		cmocka_unit_test(each_ep_has_its_own_bound),
		cmocka_unit_test(a_micro_batch_has_any_few_windows),
		cmocka_unit_test(keys_are_hidden_in_a_bound_as_in_a_step),
		cmocka_unit_test(no_more_is_recomputed_than_must_be),
		cmocka_unit_test(sets_of_the_program_are_tried_before_whole_layers),
		cmocka_unit_test(every_usable_gpu_has_a_rank_where_that_is_asked),
		cmocka_unit_test(what_does_not_fit_names_what_can_be_changed),
		cmocka_unit_test(what_cannot_be_held_is_refused),
		cmocka_unit_test(what_counts_as_layers_has_limits),
		cmocka_unit_test(memory_is_charged_for_the_longest_micro_batch),
		cmocka_unit_test(usual_layouts_come_first_among_near_equals),
		cmocka_unit_test(fewer_candidates_are_the_first_of_more),
		cmocka_unit_test(chunks_of_each_size_are_tried),
		cmocka_unit_test(stages_at_the_ends_have_less_layers),
		cmocka_unit_test(embedding_and_head_count_where_that_helps),
		cmocka_unit_test(rates_belong_to_the_step_time),
		cmocka_unit_test(a_bad_tree_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
