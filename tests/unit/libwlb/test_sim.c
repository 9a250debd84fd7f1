/* What a simulated step costs, and what it refuses. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libwlb/cost/layer.h"
#include "tests/unit/libwlb/models.h"
#include "tests/unit/libwlb/sim_cases.h"

static void assert_near(double got, double expected, double tolerance)
{
	if (!(fabs(got - expected) <= tolerance * fabs(expected)))
		fail_msg("%.12g is not %.12g", got, expected);
}

/* One GPU, one document: FLOPs at the speeds of the machine, by hand. */
static void one_document_on_one_gpu_takes_its_flops(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	machine.memory_bytes_per_s = 1e15;
	machine.attention_overhead_keys = 0.0;
	machine.attention_efficiency = machine.attention_backward_efficiency = machine.gemm_efficiency = 0.5;
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	int64_t tokens = 16384;
	struct wlb_step step = equal_step(1, &tokens, 1);
	struct wlb_sim_result result = simulate(&model, &machine, &options, &step);
	double n = (double)tokens, layers = 32.0;
	double matrices = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008, head = 4096.0 * 32000;
	double flops = 3.0 * 2.0 * n * (layers * matrices + head) + 3.5 * layers * 2.0 * 4096 * n * (n + 1.0);
	assert_near(result.time.compute_s, flops / (0.5 * 989.4e12), 1e-3);
	double counted = 3.0 * (2.0 * n * (layers * matrices + head) + layers * 2.0 * 4096 * n * (n + 1.0));
	assert_near(result.flops, counted, 1e-9);
	assert_near(result.utilization, counted / (result.time.step_s * 989.4e12), 1e-9);
	assert_int_equal(result.tokens, tokens);
	assert_true(result.time.tp_s == 0.0 && result.time.cp_s == 0.0 && result.time.dp_s == 0.0);
	free_step(&step);
}

/* The document's share of the time above: one layer, without the head. */
static void a_document_adds_its_flops_and_bytes(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	machine.memory_bytes_per_s = 1e15;
	machine.attention_overhead_keys = 0.0;
	machine.attention_efficiency = machine.attention_backward_efficiency = machine.gemm_efficiency = 0.5;
	struct wlb_plan plans[] = {plan_of(1, 1, 1, 1, 1, 1), plan_of(2, 1, 1, 1, 1, 1)};
	double seconds[2], n = 16384.0, matrices = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008;
	double flops = 3.0 * 2.0 * n * matrices + 3.5 * 2.0 * 4096 * n * (n + 1.0);
	for (int i = 0; i < 2; i++) {
		struct wlb_sim_options options;
		struct wlb_error error;
		wlb_sim_options_init(&options, &plans[i]);
		options.cost.tp_overlap = (struct wlb_overlap){0};
		struct wlb_sim *sim = wlb_sim_new(&model, &machine, &options, &error);
		assert_non_null(sim);
		seconds[i] = wlb_sim_document_s(sim, (int64_t)n);
		wlb_sim_free(sim);
	}
	assert_near(seconds[0], flops / (0.5 * 989.4e12), 1e-3);
	/* Two tensor-parallel ranks: half of the FLOPs, and four gathers or scatters of the rows forward, six backward.
	 */
	double gathers = 10.0 * n * 4096 * 2.0 * 0.5 / machine.node_link.bytes_per_s;
	assert_near(seconds[1], 0.5 * seconds[0] + gathers, 1e-3);
}

static double step_s_of(const struct wlb_machine *machine, const struct wlb_plan *plan, int64_t tokens,
                        const double *slowdown)
{
	struct wlb_model model = llama_7b();
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, plan);
	options.slowdown = slowdown;
	struct wlb_step step = equal_step(plan->micro_batches * plan->layout.dp, &tokens, 1);
	double step_s = simulate(&model, machine, &options, &step).time.step_s;
	free_step(&step);
	return step_s;
}

static void more_work_and_slower_hardware_take_longer(void **state)
{
	(void)state;
	struct wlb_machine machine = h100(), slow;
	struct wlb_plan plan = plan_of(4, 4, 4, 2, 2, 8);
	double base = step_s_of(&machine, &plan, 32768, NULL);
	assert_true(step_s_of(&machine, &plan, 32896, NULL) > base);
	double *fields[] = {&slow.peak_flops,
	                    &slow.memory_bytes_per_s,
	                    &slow.node_link.bytes_per_s,
	                    &slow.network_link.bytes_per_s,
	                    &slow.gemm_efficiency,
	                    &slow.attention_efficiency};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		slow = machine;
		*fields[i] *= 0.5;
		assert_true(step_s_of(&slow, &plan, 32768, NULL) > base);
	}
	slow = machine;
	slow.network_link.latency_s *= 100.0;
	assert_true(step_s_of(&slow, &plan, 32768, NULL) > base);
}

static void a_straggler_holds_up_its_stage(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(2, 1, 1, 2, 1, 4);
	double slowdown[4] = {1.0, 1.0, 1.0, 2.0};
	int64_t tokens = 8192;
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	struct wlb_step step = equal_step(8, &tokens, 1);
	struct wlb_sim_result even = simulate(&model, &machine, &options, &step);
	options.slowdown = slowdown;
	struct wlb_sim_result result = simulate(&model, &machine, &options, &step);
	assert_near(result.time.straggler_s, even.time.compute_s, 0.01);
	assert_near(result.time.step_s, even.time.step_s + result.time.straggler_s, 1e-9);
	assert_near(sum_of_parts(&result.time), result.time.step_s, 1e-9);
	assert_int_equal(result.worst_replica, 1);
	free_step(&step);
}

static struct wlb_sim_result on_context_ranks(enum wlb_sharding sharding, enum wlb_sim_attention attention, int ring,
                                              const int64_t *tokens, size_t count)
{
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 4, 1, 1, 1, 1);
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	options.sharding = sharding;
	options.attention = attention;
	options.ring = ring;
	struct wlb_step step = equal_step(1, tokens, count);
	struct wlb_sim_result result = simulate(&model, &machine, &options, &step);
	free_step(&step);
	return result;
}

static struct wlb_sim_result sharded(enum wlb_sharding sharding, const int64_t *tokens, size_t count)
{
	return on_context_ranks(sharding, WLB_SIM_SHARDED, 0, tokens, count);
}

static void sharding_decides_what_context_ranks_wait(void **state)
{
	(void)state;
	static const int64_t mixed[] = {60000, 1000, 2000, 500, 3000, 20, 7000, 12000};
	static const int64_t shorts[64] = {[0 ... 63] = 512};
	struct wlb_sim_result sequence = sharded(WLB_SHARDING_SEQUENCE, mixed, 8);
	struct wlb_sim_result document = sharded(WLB_SHARDING_DOCUMENT, mixed, 8);
	struct wlb_sim_result adaptive = sharded(WLB_SHARDING_ADAPTIVE, mixed, 8);
	assert_true(sequence.time.cp_imbalance_s > 0.02 * sequence.time.compute_s);
	assert_true(document.time.cp_imbalance_s == 0.0);
	assert_true(document.time.step_s < sequence.time.step_s);
	assert_true(adaptive.time.step_s == document.time.step_s);
	assert_int_equal(adaptive.per_document, 1);
	/* Chunks of 64 tokens fill half of a tile: whole documents are sooner. */
	sequence = sharded(WLB_SHARDING_SEQUENCE, shorts, 64);
	document = sharded(WLB_SHARDING_DOCUMENT, shorts, 64);
	adaptive = sharded(WLB_SHARDING_ADAPTIVE, shorts, 64);
	assert_true(sequence.time.step_s < document.time.step_s);
	assert_true(adaptive.time.step_s == sequence.time.step_s);
	assert_int_equal(adaptive.per_document, 0);
	/* Nothing to gather where no document is split. */
	struct wlb_sim_result dynamic = on_context_ranks(WLB_SHARDING_ADAPTIVE, WLB_SIM_DYNAMIC, 0, shorts, 64);
	assert_true(dynamic.time.cp_s < 0.2 * adaptive.time.cp_s);
	assert_true(dynamic.time.step_s < adaptive.time.step_s);
	/* By their length all but the first are on one rank each, by their work the longest of these are on more. */
	struct wlb_sim_result hybrid = on_context_ranks(WLB_SHARDING_ADAPTIVE, WLB_SIM_HYBRID, 0, mixed, 8);
	dynamic = on_context_ranks(WLB_SHARDING_ADAPTIVE, WLB_SIM_DYNAMIC, 0, mixed, 8);
	assert_true(hybrid.time.cp_imbalance_s > 2.0 * dynamic.time.cp_imbalance_s);
	assert_int_equal(hybrid.tokens, dynamic.tokens);
}

/* Micro-batches of all replicas together. The ranks of a long document exchange its keys; documents of one rank are
 * theirs, as with data parallelism alone. */
static void documents_have_ranks_of_all_replicas(void **state)
{
	(void)state;
	static const int64_t equal[] = {4096};
	struct wlb_packed_span spans[16];
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 1, 1, 8, 1, 2);
	struct wlb_sim_options options;
	struct wlb_step all = equal_step(16, equal, 1), uneven = all;
	memcpy(spans, all.spans, sizeof(spans));
	spans[0].span.tokens = 65536;
	uneven.spans = spans;
	wlb_sim_options_init(&options, &plan);
	wlb_cost_options_worker(&options.cost, &machine);
	struct wlb_sim_result replicas = simulate(&model, &machine, &options, &all);
	struct wlb_sim_result waiting = simulate(&model, &machine, &options, &uneven);
	options.attention = WLB_SIM_DYNAMIC;
	options.plan.dynamic_cp = 8;
	struct wlb_sim_result placed = simulate(&model, &machine, &options, &all);
	assert_near(placed.time.step_s, replicas.time.step_s, 0.01);
	assert_near(placed.tokens_per_s, replicas.tokens_per_s, 0.01);
	assert_near(placed.flops, replicas.flops, 1e-12);
	struct wlb_sim_result divided = simulate(&model, &machine, &options, &uneven);
	assert_near(sum_of_parts(&divided.time), divided.time.step_s, 1e-9);
	assert_near(divided.flops, waiting.flops, 1e-12);
	assert_true(divided.time.cp_s > 0.0);
	assert_true(divided.time.step_s < 0.5 * waiting.time.step_s);
	/* Two of the replicas are a sample of all. */
	all.micro_batches = 4;
	all.count = 4;
	struct wlb_sim_result sampled = simulate(&model, &machine, &options, &all);
	assert_near(sampled.tokens_per_s, placed.tokens_per_s, 0.01);
	options.attention = WLB_SIM_SHARDED;
	assert_null(wlb_sim_new(&model, &machine, &options, NULL));
	free_step(&all);
}

/* Long documents of two ranks each: their keys hold up these, and no others of the micro-batch. */
static void keys_hold_up_the_ranks_of_their_document(void **state)
{
	(void)state;
	static const struct {
		int dp, longs, shorts;
		double share;
	} cases[] = {{2, 1, 30, 1.0}, {8, 1, 310, 0.25}, {8, 2, 300, 0.5}};
	struct wlb_packed_span spans[320] = {{.micro_batch = 0}};
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	double alone_s = 0.0;
	machine.node_link.bytes_per_s = 1e10; /* no document is on more ranks than it must be */
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct wlb_plan plan = plan_of(1, 1, 1, cases[c].dp, 1, 1);
		int count = cases[c].longs + cases[c].shorts;
		struct wlb_step step = {.spans = spans, .count = (size_t)count, .micro_batches = cases[c].dp};
		struct wlb_sim_options options;
		plan.dynamic_cp = cases[c].dp;
		wlb_sim_options_init(&options, &plan);
		wlb_cost_options_worker(&options.cost, &machine);
		options.attention = WLB_SIM_DYNAMIC;
		for (int i = 0; i < count; i++)
			spans[i].span.tokens = i < cases[c].longs ? 6000 : 100;
		struct wlb_sim_result result = simulate(&model, &machine, &options, &step);
		alone_s = c == 0 ? result.time.cp_s : alone_s;
		assert_true(alone_s > 0.0);
		assert_near(result.time.cp_s, cases[c].share * alone_s, 0.05);
		assert_true(result.time.cp_imbalance_s >= 0.0);
		assert_near(sum_of_parts(&result.time), result.time.step_s, 1e-9);
	}
}

/* A window of one document and one of four: within each the pairs of chunks are equal work. Those of both as one have a
 * chunk of the long document and a short one each. */
static void each_window_of_a_micro_batch_is_cut_by_itself(void **state)
{
	(void)state;
	static const int64_t tokens[] = {16384, 4096, 4096, 4096, 4096};
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 4, 1, 1, 1, 1);
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	options.sharding = WLB_SHARDING_SEQUENCE;
	struct wlb_step step = equal_step(1, tokens, 5);
	struct wlb_sim_result whole = simulate(&model, &machine, &options, &step);
	options.windows = 2;
	struct wlb_sim_result cut = simulate(&model, &machine, &options, &step);
	assert_true(whole.time.cp_imbalance_s > 0.02 * whole.time.compute_s);
	assert_true(cut.time.cp_imbalance_s < 1e-9 * cut.time.compute_s);
	options.windows = 0;
	struct wlb_error error;
	assert_null(wlb_sim_new(&model, &machine, &options, &error));
	assert_string_equal(error.message, "0 windows in a micro-batch: it must be between 1 and 1048576");
	free_step(&step);
}

/* Of a long document attention takes longer than its keys and values take around the ring, of short ones it does not.
 */
static void a_ring_hides_keys_and_values_beside_attention(void **state)
{
	(void)state;
	static const int64_t longest[] = {131072}, shorts[64] = {[0 ... 63] = 512};
	struct wlb_sim_result gathered = sharded(WLB_SHARDING_DOCUMENT, longest, 1);
	struct wlb_sim_result ring = on_context_ranks(WLB_SHARDING_DOCUMENT, WLB_SIM_SHARDED, 1, longest, 1);
	assert_true(gathered.time.cp_s > 0.0 && ring.time.cp_s == 0.0);
	/* A kernel for the keys of each rank takes longer than one for all. */
	assert_true(ring.time.compute_s > gathered.time.compute_s);
	assert_near(gathered.time.step_s + ring.time.compute_s,
	            ring.time.step_s + gathered.time.compute_s + gathered.time.cp_s, 1e-9);
	gathered = sharded(WLB_SHARDING_DOCUMENT, shorts, 64);
	ring = on_context_ranks(WLB_SHARDING_DOCUMENT, WLB_SIM_SHARDED, 1, shorts, 64);
	assert_true(ring.time.cp_s > 0.0 && ring.time.cp_s < gathered.time.cp_s);
}

/* Two replicas with equal tokens: one document, and sixteen whose attention is a sixteenth of its. */
static void attention_servers_share_the_attention_of_the_step(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 1, 1, 2, 1, 1);
	struct wlb_packed_span spans[17] = {{.span = {.tokens = 65536}, .micro_batch = 0}};
	for (int i = 1; i < 17; i++)
		spans[i] = (struct wlb_packed_span){.span = {.tokens = 4096}, .micro_batch = 1};
	struct wlb_step step = {.spans = spans, .count = 17, .micro_batches = 2};
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	struct wlb_sim_result alone = simulate(&model, &machine, &options, &step);
	options.attention = WLB_SIM_SERVERS;
	struct wlb_sim_result served = simulate(&model, &machine, &options, &step);
	assert_true(alone.time.imbalance_s > 0.2 * alone.time.compute_s);
	assert_true(served.time.imbalance_s < 1e-6 * served.time.compute_s);
	assert_near(served.time.compute_s, alone.time.compute_s, 1e-6);
	assert_near(sum_of_parts(&served.time), served.time.step_s, 1e-9);
	assert_true(served.time.cp_s == 0.0);
	/* On a network as slow as a disk nothing hides that queries, keys, values and outputs travel. */
	machine.node_link.bytes_per_s = 1e8;
	double bytes = 65536.0 * 4096 * 2.0 * 4.0, links_s = 3.0 * 32.0 * bytes / 1e8;
	served = simulate(&model, &machine, &options, &step);
	assert_near(served.time.cp_s + served.time.compute_s, links_s, 0.05);
}

static void a_sample_of_equal_replicas_stands_for_all(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(2, 2, 4, 8, 1, 6);
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	int64_t tokens[] = {5000, 30000};
	struct wlb_step all = equal_step(48, tokens, 2), sample = equal_step(12, tokens, 2);
	struct wlb_sim_result a = simulate(&model, &machine, &options, &all);
	struct wlb_sim_result b = simulate(&model, &machine, &options, &sample);
	assert_near(b.time.step_s, a.time.step_s, 1e-12);
	assert_near(b.tokens_per_s, a.tokens_per_s, 1e-9);
	assert_near(b.utilization, a.utilization, 1e-9);
	free_step(&all);
	free_step(&sample);
}

static void full_recomputation_adds_a_forward_pass(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(2, 1, 2, 1, 1, 4);
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	options.cost.tp_overlap = (struct wlb_overlap){0};
	int64_t tokens = 16384;
	struct wlb_step step = equal_step(4, &tokens, 1);
	struct wlb_sim_result keep = simulate(&model, &machine, &options, &step);
	options.plan.recompute = WLB_RECOMPUTE_FULL;
	struct wlb_sim_result again = simulate(&model, &machine, &options, &step);
	assert_true(keep.time.recompute_s == 0.0);
	assert_true(again.time.recompute_s > 0.25 * keep.time.compute_s &&
	            again.time.recompute_s < 0.4 * keep.time.compute_s);
	/* 10 collectives in each of 32 layers, 5 at both ends of the model, and 4 more in a layer. */
	assert_near(again.time.tp_s, keep.time.tp_s * (14.0 * 32 + 5) / (10.0 * 32 + 5), 1e-9);
	assert_near(again.flops, keep.flops, 1e-12);
	/* Without the last product, the sum after it and one of the four collectives, in each layer of four passes. */
	options.cost.early_stop = 1;
	struct wlb_sim_result less = simulate(&model, &machine, &options, &step);
	const struct wlb_layer_cost cost = {&model, &machine, &options.cost, &options.plan};
	double last_s = 32.0 * 4.0 * wlb_layer_last_s(&cost, 16384.0);
	assert_true(last_s > 0.2 * again.time.recompute_s && last_s < 0.4 * again.time.recompute_s);
	assert_near(less.time.recompute_s, again.time.recompute_s - last_s / plan.layout.pp, 1e-9);
	assert_near(less.time.cp_imbalance_s, 0.0, 1e-9);
	assert_near(less.time.tp_s, keep.time.tp_s * (13.0 * 32 + 5) / (10.0 * 32 + 5), 1e-9);
	free_step(&step);
}

/* With whole tensors, gradients and weights go in a collective for each of them, through a ring of all ranks. */
static void owners_of_tensors_have_a_collective_for_each(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 1, 1, 512, 1, 1);
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	options.cost.overlap_gradients = options.cost.overlap_parameters = 0;
	options.cost.owned_tensors = 1;
	int64_t tokens = 4096;
	struct wlb_step step = equal_step(512, &tokens, 1);
	double parameters = (double)wlb_model_parameters(&model);
	for (int32_t zero = 0; zero <= 1; zero++) {
		options.plan.zero_stage = zero;
		struct wlb_sim_result result = simulate(&model, &machine, &options, &step);
		double calls = 9.0 * 32, once_s = wlb_machine_gather_s(&machine, 512, 8, 0, 4.0 * parameters);
		double owned_s = calls * (wlb_machine_root_s(&machine, 512, 8, 0, 4.0 * parameters / calls) +
		                          wlb_machine_root_s(&machine, 512, 8, 0, 2.0 * parameters / calls));
		assert_near(result.time.dp_s, zero == 1 ? owned_s : 2.0 * once_s, 1e-9);
		assert_true(owned_s > 4.0 * once_s);
	}
	free_step(&step);
}

static void zero_3_moves_weights_in_every_micro_batch(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 1, 1, 16, 1, 4);
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	options.cost.overlap_gradients = options.cost.overlap_parameters = 0;
	int64_t tokens = 4096;
	struct wlb_step step = equal_step(64, &tokens, 1);
	for (int zero = 0; zero <= 4; zero++) {
		options.cost.shards_each_pass = zero == 4;
		options.plan.zero_stage = zero == 4 ? 1 : zero;
		struct wlb_sim_result result = simulate(&model, &machine, &options, &step);
		/* Bytes a parameter: all-reduce of gradients; scattered, weights gathered; scattered each time; that
		 * and weights gathered twice each time; ZeRO-1 in each pass, weights once each time. Then those that
		 * are copied: gradients of 2 bytes into one buffer of 4, and gathered weights read and written. */
		static const double bytes[] = {2 * 4.0, 4.0 + 2.0, 4 * 4.0 + 2.0, 4 * (4.0 + 2 * 2.0), 4 * (4.0 + 2.0)};
		static const double copied[] = {0.0, 0.0, 4 * 6.0, 4 * (6.0 + 2 * 4.0), 4 * (6.0 + 4.0)};
		double parameters = (double)wlb_model_parameters(&model);
		double gather_s = wlb_machine_gather_s(&machine, 16, 8, 0, parameters);
		double copy_s = parameters / machine.memory_bytes_per_s;
		assert_near(result.time.dp_s, bytes[zero] * gather_s + copied[zero] * copy_s, 0.01);
		assert_near(sum_of_parts(&result.time), result.time.step_s, 1e-9);
		assert_true(fabs(result.time.imbalance_s) < 1e-9);
	}
	free_step(&step);
}

/* Where layers are a loop, the first matrix of each is waited for, 3 of 12 of GPT's weights, and backward where whole
 * layers are recomputed; where they are not, the weights of one layer of 32. Long windows hide all others. */
static void weights_of_looped_layers_are_gathered_when_each_begins(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 1, 1, 16, 1, 1);
	struct wlb_sim_options options;
	int64_t tokens = 65536;
	struct wlb_step step = equal_step(16, &tokens, 1);
	model.intermediate_size = 16384;
	model.family = WLB_FAMILY_NEMOTRON;
	wlb_sim_options_init(&options, &plan);
	options.plan.zero_stage = 3;
	double gather_s = wlb_machine_gather_s(&machine, 16, 8, 0, 2.0 * (double)wlb_model_parameters(&model));
	for (int full = 0; full < 2; full++) {
		double passes = 1.0 + full, waited_s = passes * (3.0 / 12.0 - 1.0 / 32.0) * gather_s;
		options.plan.recompute = full ? WLB_RECOMPUTE_FULL : WLB_RECOMPUTE_CORE_ATTN;
		options.cost.looped_layers = 0;
		double ahead_s = simulate(&model, &machine, &options, &step).time.dp_s;
		options.cost.looped_layers = 1;
		assert_near(simulate(&model, &machine, &options, &step).time.dp_s - ahead_s, waited_s, 0.01);
	}
	free_step(&step);
}

/* Two stages of 8 replicas on two nodes: with pp outermost all replicas of a stage are on one node, and stages send
 * over the network. The GPUs of a node are then of one stage, for which the other waits where they are slow. */
static void stages_may_be_on_nodes_of_their_own(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 1, 2, 8, 1, 4);
	struct wlb_sim_options options;
	double slowdown[16], dp_s[2], pp_s[2], step_s[2][2];
	wlb_sim_options_init(&options, &plan);
	options.cost.overlap_gradients = options.cost.overlap_parameters = 0;
	machine.node_link.latency_s = machine.network_link.latency_s = 0.0;
	for (int i = 0; i < 16; i++)
		slowdown[i] = i < 8 ? 3.0 : 1.0; /* of stage 0, or of half the replicas */
	int64_t tokens = 4096;
	struct wlb_step step = equal_step(32, &tokens, 1);
	for (int outermost = 0; outermost <= 1; outermost++)
		for (int slow = 0; slow <= 1; slow++) {
			options.cost.pp_outermost = outermost;
			options.slowdown = slow ? slowdown : NULL;
			struct wlb_sim_result result = simulate(&model, &machine, &options, &step);
			dp_s[outermost] = result.time.dp_s;
			pp_s[outermost] = result.time.pp_s;
			step_s[outermost][slow] = result.time.step_s;
		}
	free_step(&step);
	assert_near(dp_s[0] / dp_s[1],
	            wlb_machine_gather_s(&machine, 8, 4, 0, 1e9) / wlb_machine_gather_s(&machine, 8, 8, 0, 1e9), 1e-9);
	assert_near(pp_s[1] / pp_s[0], 370.8 / 50.0, 1e-9);
	/* Of a replica that is slow as a whole each pass takes longer, else those of one stage. */
	assert_true(step_s[0][1] - step_s[0][0] > 1.1 * (step_s[1][1] - step_s[1][0]));
}

/* Mixtral over 8 GPUs of a node: two copies of a row go to the ranks of their experts and come back, in both
 * directions, and gradients of experts are of fewer ranks. With tp 2, the rows of each expert are gathered once they
 * have arrived.
 */
static void rows_go_to_the_ranks_of_their_experts(void **state)
{
	(void)state;
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 1, 1, 8, 1, 2);
	struct wlb_sim_options options;
	int64_t tokens = 4096;
	struct wlb_step step = equal_step(16, &tokens, 1);
	plan.ep = 8;
	wlb_sim_options_init(&options, &plan);
	options.cost.overlap_gradients = options.cost.overlap_parameters = 0;
	options.cost.tp_overlap = (struct wlb_overlap){0.0, 0.0};
	struct wlb_sim_time apart = simulate(&mixtral_8x7b, &machine, &options, &step).time;
	double bytes = 2.0 * 4096 * 4096 * 2,
	       exchange_s = wlb_machine_exchange_s(&machine, 8, 8, 0, 7 * bytes / 8, 0.0);
	assert_near(apart.ep_s, 2.0 * 32 * 4 * exchange_s, 1e-9);
	assert_near(sum_of_parts(&apart), apart.step_s, 1e-9);
	double others = (double)wlb_model_parameters(&mixtral_8x7b) - 32.0 * 8 * 3 * 4096 * 14336;
	assert_near(apart.dp_s, wlb_machine_gather_s(&machine, 8, 8, 0, (4.0 + 2.0) * others), 0.01);
	options.cost.owned_tensors = 1; /* no other rank has the same experts */
	double owned_s = wlb_machine_root_s(&machine, 8, 8, 0, 4.0 / 8 * others) +
	                 wlb_machine_root_s(&machine, 8, 8, 0, 2.0 / 8 * others);
	assert_near(simulate(&mixtral_8x7b, &machine, &options, &step).time.dp_s, 8.0 * owned_s, 1e-6);
	options.cost.owned_tensors = 0;
	options.plan.recompute = WLB_RECOMPUTE_FULL;
	apart = simulate(&mixtral_8x7b, &machine, &options, &step).time;
	assert_near(apart.ep_s, 2.0 * 32 * 6 * exchange_s, 1e-9);
	assert_near(sum_of_parts(&apart), apart.step_s, 1e-9);
	options.plan = plan_of(2, 1, 1, 4, 1, 4);
	options.plan.ep = 2; /* two groups of ranks with the same experts */
	apart = simulate(&mixtral_8x7b, &machine, &options, &step).time;
	assert_near(apart.ep_s, 4.0 * 32 * 4 * wlb_machine_exchange_s(&machine, 2, 4, 0, bytes / 4, 0.0), 1e-9);
	double gather_s = wlb_machine_gather_s(&machine, 2, 2, 0, 4096 * 4096 * 2),
	       layers = 32 * (4 + 2 * 2 + 1 + 2 * 2);
	assert_near(apart.tp_s, 4.0 * (layers + 5) * gather_s, 1e-9);
	struct wlb_model shared = mixtral_8x7b; /* gathers all rows for the expert that all have, too */
	shared.shared_intermediate_size = 1024;
	struct wlb_sim_time more = simulate(&shared, &machine, &options, &step).time;
	assert_near(more.tp_s - apart.tp_s, 4.0 * 32 * 5 * gather_s, 1e-9);
	double experts = 32.0 * 8 * 3 * 4096 * 14336 / 2 / 2;
	double dp_s = wlb_machine_gather_s(&machine, 4, 4, 0, (4.0 + 2.0) * others / 2) +
	              wlb_machine_gather_s(&machine, 2, 2, 0, (4.0 + 2.0) * experts);
	assert_near(apart.dp_s, dp_s, 0.01);
	free_step(&step);
}

/* What is weighted before the last product is not needed in the backward pass: with early_stop its rows do not go back
 * when layers are recomputed. */
static void rows_that_are_recomputed_may_stay(void **state)
{
	(void)state;
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 1, 1, 8, 1, 2);
	struct wlb_sim_options options;
	int64_t tokens = 4096;
	struct wlb_step step = equal_step(16, &tokens, 1);
	plan.ep = 8;
	plan.recompute = WLB_RECOMPUTE_FULL;
	wlb_sim_options_init(&options, &plan);
	double both_ways_s = simulate(&mixtral_8x7b, &machine, &options, &step).time.ep_s;
	options.cost.early_stop = 1;
	assert_near(simulate(&mixtral_8x7b, &machine, &options, &step).time.ep_s, both_ways_s, 1e-12);
	options.cost.weighted_experts = 1;
	assert_near(simulate(&mixtral_8x7b, &machine, &options, &step).time.ep_s, 5.0 / 6 * both_ways_s, 1e-9);
	free_step(&step);
}

static void assert_refused(struct wlb_plan plan, const struct wlb_step *step, const char *part)
{
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_sim_options options;
	struct wlb_sim_result result;
	struct wlb_error error = {""};
	wlb_sim_options_init(&options, &plan);
	struct wlb_sim *sim = wlb_sim_new(&model, &machine, &options, &error);
	if (sim != NULL)
		assert_int_equal(wlb_sim_step(sim, step, &result, &error), -1);
	wlb_sim_free(sim);
	if (strstr(error.message, part) == NULL)
		fail_msg("'%s' does not say '%s'", error.message, part);
}

static void bad_plans_and_steps_are_refused(void **state)
{
	(void)state;
	int64_t tokens = 100;
	struct wlb_step step = equal_step(6, &tokens, 1);
	assert_refused(plan_of(3, 1, 1, 1, 1, 6), &step, "tp must divide num_attention_heads");
	assert_refused(plan_of(0, 1, 1, 1, 1, 6), &step, "at least 1");
	assert_refused(plan_of(1, 1, 33, 1, 1, 6), &step, "num_hidden_layers");
	assert_refused(plan_of(1, 1, 4, 1, 9, 8), &step, "num_hidden_layers");
	assert_refused(plan_of(1, 1, 4, 1, 2, 6), &step, "multiple of pp");
	assert_refused(plan_of(1, 1, 1, 1, 2, 6), &step, "pp above 1");
	assert_refused(plan_of(1, 1, 1, 1, 1, 0), &step, "micro_batches");
	assert_refused(plan_of(1, 1, 1, 1 << 20, 1, 1 << 20), &step, "16777216");
	assert_refused(plan_of(1, 1, 1, 1, 1, 4), &step, "the step has 6 micro-batches");
	assert_refused(plan_of(1, 1, 1, 3, 1, 4), &step, "the step has 6 micro-batches");
	struct wlb_plan divided = plan_of(1, 1, 1, 1, 1, 6);
	divided.ep = 2;
	assert_refused(divided, &step, "ep must divide num_experts and dp x cp, and be 1 without experts");
	divided = plan_of(1, 1, 1, 3, 1, 6);
	for (divided.ep = 2; divided.ep <= 3; divided.ep++) /* of 3 ranks; of 8 experts */
		assert_int_equal(wlb_plan_check(&divided, &mixtral_8x7b, NULL), -1);
	struct wlb_plan plan = plan_of(1, 1, 2, 1, 1, 6);
	plan.zero_stage = 2;
	assert_refused(plan, &step, "zero 2 and 3 need pp 1");
	struct wlb_packed_span spans[] = {{.span = {.tokens = 5}, .micro_batch = 1},
	                                  {.span = {.tokens = 5}, .micro_batch = 0}};
	struct wlb_step mixed = {.spans = spans, .count = 2, .micro_batches = 6};
	assert_refused(plan_of(1, 1, 1, 1, 1, 6), &mixed, "order of micro-batches");
	struct wlb_packed_span negative[] = {{.span = {.tokens = 10}, .micro_batch = 0},
	                                     {.span = {.tokens = -5}, .micro_batch = 0}};
	struct wlb_step less = {.spans = negative, .count = 2, .micro_batches = 1};
	assert_refused(plan_of(1, 2, 1, 1, 1, 1), &less, "span 1 has -5 tokens");
	free_step(&step);
}

static void a_refused_step_leaves_the_timeline(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 1, 1, 4, 1, 2);
	struct wlb_sim_options options;
	struct wlb_sim_result result;
	struct wlb_packed_span spans[] = {{.span = {.tokens = 100}, .micro_batch = 0},
	                                  {.span = {.tokens = 100}, .micro_batch = 1}};
	struct wlb_step step = {.spans = spans, .count = 2, .micro_batches = 2};
	size_t count, after;
	wlb_sim_options_init(&options, &plan);
	struct wlb_sim *sim = wlb_sim_new(&model, &machine, &options, NULL);
	assert_non_null(sim);
	assert_int_equal(wlb_sim_step(sim, &step, &result, NULL), 0);
	wlb_sim_timeline(sim, &count);
	assert_int_equal(count, 4);
	step.micro_batches = 8;
	spans[1].micro_batch = 9;
	assert_int_equal(wlb_sim_step(sim, &step, &result, NULL), -1);
	wlb_sim_timeline(sim, &after);
	assert_int_equal(after, count);
	wlb_sim_free(sim);
}

/* A step on one GPU is computation alone. */
static void computation_takes_as_long_as_on_the_slowest_rank(void **state)
{
	(void)state;
	struct wlb_machine machine = h100(), uneven = machine;
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 4);
	uneven.slowest_rank = 1.25;
	for (int recompute = WLB_RECOMPUTE_NONE; recompute <= WLB_RECOMPUTE_FULL; recompute++) {
		plan.recompute = (enum wlb_recompute)recompute;
		assert_near(step_s_of(&uneven, &plan, 4096, NULL), 1.25 * step_s_of(&machine, &plan, 4096, NULL),
		            1e-12);
	}
	/* Messages are not computation. */
	plan = plan_of(8, 1, 1, 1, 1, 4);
	assert_true(step_s_of(&uneven, &plan, 4096, NULL) < 1.25 * step_s_of(&machine, &plan, 4096, NULL));
}

static void bad_machines_are_refused(void **state)
{
	(void)state;
	struct wlb_error error;
	struct wlb_machine good = h100(), bad = good;
	assert_int_equal(wlb_machine_check(&good, &error), 0);
	bad.peak_flops = 989.0;
	assert_int_equal(wlb_machine_check(&bad, &error), -1);
	assert_non_null(strstr(error.message, "peak_flops is 989"));
	bad = good;
	bad.node_link.latency_s = NAN;
	assert_int_equal(wlb_machine_check(&bad, &error), -1);
	assert_non_null(strstr(error.message, "node_link.latency_s"));
	bad = good;
	bad.slowest_rank = 0.5;
	assert_int_equal(wlb_machine_check(&bad, &error), -1);
	assert_non_null(strstr(error.message, "slowest_rank is 0.5: it must be 0, or 1 at least"));
}

/* n ranks of b bytes: (n - 1) / n of them over each link; a ring over nodes has the ports of all its ranks. */
static void collectives_take_what_their_links_allow(void **state)
{
	(void)state;
	struct wlb_machine machine = h100();
	machine.node_link = (struct wlb_link){400e9, 0.0};
	machine.network_link = (struct wlb_link){50e9, 0.0};
	assert_true(wlb_machine_gather_s(&machine, 1, 1, 0, 1e9) == 0.0);
	assert_near(wlb_machine_gather_s(&machine, 8, 8, 0, 4e9), 7.0 / 8.0 * 0.01, 1e-12);
	assert_near(wlb_machine_gather_s(&machine, 4, 1, 0, 5e9), 0.75 * 0.1, 1e-12);
	assert_near(wlb_machine_gather_s(&machine, 16, 4, 0, 2e9), 15.0 / 16.0 * 0.01, 1e-12);
	machine.switch_taper = 0.25;
	assert_near(wlb_machine_gather_s(&machine, 4, 1, 1, 5e9), 0.75 * 0.4, 1e-12);
	machine.network_link.latency_s = 1.0;
	assert_near(wlb_machine_gather_s(&machine, 8, 1, 0, 0.0), 3.0, 1e-12);
}

static void goodput_is_dalys(void **state)
{
	(void)state;
	struct wlb_error error;
	struct wlb_goodput goodput;
	/* 1,000 nodes of 5 years, a checkpoint of 1 minute each hour, 10 minutes to restart. */
	struct wlb_failures f = {5 * 365 * 86400.0, 1000, 3600.0, 60.0, 600.0};
	double mtbf_s = f.mtbf_s / 1000;
	assert_int_equal(wlb_goodput(&f, &goodput, &error), 0);
	assert_near(1.0 / goodput.share, mtbf_s * exp(600.0 / mtbf_s) * (exp(3660.0 / mtbf_s) - 1.0) / 3600.0, 1e-9);
	assert_near(goodput.share + goodput.lost_checkpoint + goodput.lost_failures, 1.0, 1e-12);
	assert_near(goodput.failures_per_day, 86400.0 / mtbf_s, 1e-12);
	/* Where failures are rare the best interval is Young's (1974), and no other is better. */
	f.interval_s = 0.0;
	struct wlb_goodput best;
	assert_int_equal(wlb_goodput(&f, &best, &error), 0);
	assert_near(best.interval_s, sqrt(2.0 * 60.0 * mtbf_s), 0.02);
	for (f.interval_s = 600.0; f.interval_s < 20000.0; f.interval_s += 100.0) {
		assert_int_equal(wlb_goodput(&f, &goodput, &error), 0);
		assert_true(goodput.share <= best.share + 1e-9);
	}
	f.mtbf_s = 1e12;
	f.interval_s = 540.0;
	assert_int_equal(wlb_goodput(&f, &goodput, &error), 0);
	assert_near(goodput.share, 0.9, 1e-5);
	f.nodes = 0;
	assert_int_equal(wlb_goodput(&f, &goodput, &error), -1);
	f = (struct wlb_failures){-1.0, 1, 1.0, 1.0, 1.0};
	assert_int_equal(wlb_goodput(&f, &goodput, &error), -1);
	assert_non_null(strstr(error.message, "mtbf_s is -1"));
}

/* How long the passes of one kind take in total on a stage; they are of equal micro-batches. */
static double kind_s(const struct wlb_sim_event *events, size_t count, int32_t stage, int backward, int head)
{
	double sum_s = 0.0;
	for (size_t i = 0; i < count; i++)
		if (events[i].stage == stage && events[i].backward == backward && events[i].head == head)
			sum_s += events[i].end_s - events[i].start_s;
	return sum_s;
}

/* A head as large as several layers, over links that take no time: every stage computes an equal share, and the
 * pipeline is idle only while it fills and empties, as one of equal stages without a head. */
static void a_shared_head_leaves_no_stage_behind(void **state)
{
	(void)state;
	static const struct {
		int pp, interleave, micro_batches;
		enum wlb_recompute recompute;
	} cases[] = {{2, 1, 8, 0},  {4, 1, 16, 0}, {8, 1, 16, 0}, {8, 1, 16, WLB_RECOMPUTE_FULL},
	             {4, 2, 16, 0}, {2, 4, 8, 0}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_model model = llama_7b();
		struct wlb_machine machine = h100();
		struct wlb_plan plan = plan_of(1, 1, cases[i].pp, 1, cases[i].interleave, cases[i].micro_batches);
		machine.node_link.bytes_per_s = machine.memory_bytes_per_s = 1e15;
		machine.node_link.latency_s = 1e-12;
		model.vocab_size = 256000;
		plan.recompute = cases[i].recompute;
		plan.shared_head = 1;
		struct wlb_sim_options options;
		wlb_sim_options_init(&options, &plan);
		int64_t tokens = 4096;
		struct wlb_step step = equal_step(plan.micro_batches, &tokens, 1);
		struct wlb_error error = {""};
		struct wlb_sim *sim = wlb_sim_new(&model, &machine, &options, &error);
		struct wlb_sim_result result;
		assert_string_equal(error.message, "");
		assert_int_equal(wlb_sim_step(sim, &step, &result, &error), 0);
		size_t count;
		const struct wlb_sim_event *events = wlb_sim_timeline(sim, &count);
		double end_s = 0.0, layers_s = kind_s(events, count, 0, 0, 0) + kind_s(events, count, 0, 1, 0);
		double head_s = kind_s(events, count, 0, 0, 1), m = plan.micro_batches;
		for (size_t e = 0; e < count; e++)
			end_s = fmax(end_s, events[e].end_s);
		assert_true(head_s > 0.03 * layers_s);
		for (int32_t s = 0; s < plan.layout.pp - 1; s++)
			assert_near(kind_s(events, count, s, 0, 1), head_s, 1e-9);
		assert_near(kind_s(events, count, plan.layout.pp - 1, 1, 0), kind_s(events, count, 0, 1, 0) + head_s,
		            1e-3);
		double fills_s = (plan.layout.pp - 1) * layers_s / (m * plan.interleave);
		assert_near(end_s, layers_s + head_s + fills_s, 1e-3);
		wlb_sim_free(sim);
		free_step(&step);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shared_head_leaves_no_stage_behind),
		cmocka_unit_test(one_document_on_one_gpu_takes_its_flops),
		cmocka_unit_test(a_document_adds_its_flops_and_bytes),
		cmocka_unit_test(more_work_and_slower_hardware_take_longer),
		cmocka_unit_test(computation_takes_as_long_as_on_the_slowest_rank),
		cmocka_unit_test(a_straggler_holds_up_its_stage),
		cmocka_unit_test(sharding_decides_what_context_ranks_wait),
		cmocka_unit_test(documents_have_ranks_of_all_replicas),
		cmocka_unit_test(keys_hold_up_the_ranks_of_their_document),
		cmocka_unit_test(each_window_of_a_micro_batch_is_cut_by_itself),
		cmocka_unit_test(a_ring_hides_keys_and_values_beside_attention),
		cmocka_unit_test(attention_servers_share_the_attention_of_the_step),
		cmocka_unit_test(a_sample_of_equal_replicas_stands_for_all),
		cmocka_unit_test(full_recomputation_adds_a_forward_pass),
		cmocka_unit_test(owners_of_tensors_have_a_collective_for_each),
		cmocka_unit_test(zero_3_moves_weights_in_every_micro_batch),
		cmocka_unit_test(weights_of_looped_layers_are_gathered_when_each_begins),
		cmocka_unit_test(stages_may_be_on_nodes_of_their_own),
		cmocka_unit_test(rows_go_to_the_ranks_of_their_experts),
		cmocka_unit_test(rows_that_are_recomputed_may_stay),
		cmocka_unit_test(bad_plans_and_steps_are_refused),
		cmocka_unit_test(a_refused_step_leaves_the_timeline),
		cmocka_unit_test(bad_machines_are_refused),
		cmocka_unit_test(collectives_take_what_their_links_allow),
		cmocka_unit_test(goodput_is_dalys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
