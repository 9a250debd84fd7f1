/* The memory model against published sizes, by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/libwlb/models.h"
#include "tests/unit/libwlb/sim_cases.h"

static const double parameters_7b = 6738415616.0, parameters_70b = 68976648192.0;

static void assert_near(double got, double expected, double tolerance)
{
	if (!(fabs(got - expected) <= tolerance * fabs(expected)))
		fail_msg("%.12g is not %.12g", got, expected);
}

/* 2 bytes of weights, 4 of gradients, 12 of the optimizer: 18 a parameter, 6 + 12 / d with ZeRO-1 (the table of
 * Megatron-LM's distributed optimizer), and so on (Rajbhandari et al. 2020, figure 1, with gradients of 4 bytes). */
static void states_of_llama_7b_are_18_bytes_a_parameter(void **state)
{
	(void)state;
	static const double bytes[] = {18.0, 6.0 + 12.0 / 8, 2.0 + 16.0 / 8, 18.0 / 8};
	struct wlb_model model = llama_7b();
	for (int zero = 0; zero <= 3; zero++) {
		struct wlb_plan plan = plan_of(1, 1, 1, 8, 1, 1);
		plan.zero_stage = zero;
		struct wlb_memory m = wlb_memory_stage(&plan, &model, 0, 4096, 4096);
		assert_near(m.weights + m.gradients + m.optimizer, bytes[zero] * parameters_7b, 1e-12);
	}
}

static void stages_and_tensor_ranks_hold_the_whole_of_llama_70b(void **state)
{
	(void)state;
	struct wlb_model model = llama_70b();
	double norms = 8192.0 * (2 * 80 + 1);
	for (int v = 1; v <= 3; v++) {
		struct wlb_plan plan = plan_of(8, 1, 4, 1, v, 8);
		plan.zero_stage = 0;
		double weights = 0.0;
		for (int32_t s = 0; s < 4; s++)
			weights += 8.0 * wlb_memory_stage(&plan, &model, s, 4096, 4096).weights;
		/* Norms are on every tensor-parallel rank. */
		assert_near(weights, 2.0 * (parameters_70b + 7.0 * norms), 1e-12);
	}
}

/* Of a layer and token: 4 inputs of hidden, queries and outputs, keys and values, 3 of the MLP; 2 bytes each. */
static const double layer_bytes_7b = 2.0 * (4 * 4096 + 2 * 4096 + 2 * 4096 + 3 * 11008);

static void activations_are_those_of_korthikanti(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 4);
	double n = 4096.0, last = 2.0 * 2.0 * n * 4096.0;
	struct wlb_memory m = wlb_memory_stage(&plan, &model, 0, 4096, 4096);
	assert_near(m.activations, 32.0 * n * layer_bytes_7b + last, 1e-12);
	/* 34 s b h of the paper's layer, with a gated MLP of 2.69 instead of 4 and no dropout. */
	assert_near(m.activations / (32.0 * n * 4096.0), 34.0, 0.06);
	plan.recompute = WLB_RECOMPUTE_NONE; /* a fused kernel keeps no scores */
	m = wlb_memory_stage(&plan, &model, 0, 4096, 4096);
	assert_near(m.activations, 32.0 * n * layer_bytes_7b + last, 1e-12);
	const struct wlb_machine bfloat16 = {.element_bytes = 2};
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	options.unfused_attention = 1;
	m = wlb_memory_stage_of(&plan, &model, &bfloat16, &options, 0, 4096, 4096);
	assert_near(m.activations, 32.0 * n * (layer_bytes_7b + 5.0 * 32 * n) + last, 1e-12);
	/* 8 ranks that each have all rows: 4 inputs of hidden are whole, the others cut. */
	struct wlb_plan cut = plan_of(8, 1, 1, 1, 1, 4);
	cut.recompute = WLB_RECOMPUTE_SELECTIVE;
	options.whole_rows = 1;
	m = wlb_memory_stage_of(&cut, &model, &bfloat16, &options, 0, 4096, 4096);
	double scores = 5.0 * 32 * n / 8.0; /* of the layer that is computed again */
	assert_near(m.activations, n * (32.0 * (layer_bytes_7b / 8.0 + 7.0 * 4096) + scores) + last / 8.0, 1e-12);
	plan.recompute = WLB_RECOMPUTE_FULL;
	m = wlb_memory_stage(&plan, &model, 0, 4096, 4096);
	double whole = 32.0 * n * 2 * 4096 + n * layer_bytes_7b + last;
	assert_near(m.activations, whole, 1e-12);
	assert_near(m.logits, 6.0 * n * 32000, 1e-12);
	options.whole_rows = 0; /* the scores of the layer that is computed again */
	options.logit_bytes = 10.0;
	m = wlb_memory_stage_of(&plan, &model, &bfloat16, &options, 0, 4096, 4096);
	assert_near(m.activations, whole + n * 5.0 * 32 * n, 1e-12);
	assert_near(m.logits, 10.0 * n * 32000, 1e-12);
}

/* wlb-worker has the logits of as many rows as 512 MiB hold, and of 128 at least. */
static void a_worker_has_logits_of_some_rows(void **state)
{
	(void)state;
	assert_int_equal(wlb_logit_rows(100, 32000, 1, 4), 100);
	assert_int_equal(wlb_logit_rows(8192, 32000, 1, 4), 4194);
	assert_int_equal(wlb_logit_rows(8192, 32000, 1, 2), 8192);
	assert_int_equal(wlb_logit_rows(8192, 128256, 1, 8), 523);
	assert_int_equal(wlb_logit_rows(1 << 20, 1 << 20, 1, 8), 128);
	/* All tensor-parallel ranks have the same number of rows, also where their shares differ. */
	assert_int_equal(wlb_logit_rows(1 << 20, (1 << 20) - 1, 2, 4), 256);
	assert_int_equal(wlb_logit_rows(1 << 20, (1 << 20) + 1, 2, 4), 255);
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = {.element_bytes = 4};
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 4);
	struct wlb_cost_options worker;
	wlb_cost_options_worker(&worker, &machine);
	/* They and their statistics are where the gradients of a layer's attention are at other times, and count as far
	 * as they are more. */
	model.vocab_size = 128256;
	double few = wlb_memory_stage_of(&plan, &model, &machine, &worker, 0, 1000, 1000).logits;
	double many = wlb_memory_stage_of(&plan, &model, &machine, &worker, 0, 65536, 65536).logits;
	double of_layer = 4.0 * 4096.0 + 128.0;
	assert_near(few, 4.0 * 1000.0 * (128256.0 + 3.0 - of_layer), 1e-12);
	assert_near(many, 0.0, 1e-12);
}

/* A rank has the rows and the keys of static context parallelism over the ranks that it reserves for, and beyond its
 * communicators one for each number of ranks but cp: of 8 those of 8 and 4. */
static void dynamic_context_parallelism_reserves_the_keys_of_all_ranks(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = {.element_bytes = 2};
	struct wlb_plan dynamic = plan_of(2, 2, 1, 4, 1, 4), fixed = plan_of(2, 8, 1, 1, 1, 4);
	struct wlb_cost_options worker;
	wlb_cost_options_worker(&worker, &machine);
	dynamic.dynamic_cp = 8;
	for (int recompute = WLB_RECOMPUTE_NONE; recompute <= WLB_RECOMPUTE_FULL; recompute++) {
		dynamic.recompute = fixed.recompute = (enum wlb_recompute)recompute;
		struct wlb_memory a = wlb_memory_stage_of(&dynamic, &model, &machine, &worker, 0, 1001, 1001);
		struct wlb_memory b = wlb_memory_stage_of(&fixed, &model, &machine, &worker, 0, 4008, 4008);
		assert_near(a.allocated, b.allocated, 1e-12);
		assert_near(a.runtime - b.runtime, 2.0 * 688.0 * 1024.0 * 1024.0, 1e-12);
	}
	/* Also where that is for its own tokens alone. */
	dynamic = fixed = plan_of(2, 1, 1, 8, 1, 4);
	dynamic.dynamic_cp = 1;
	double own = wlb_memory_stage_of(&dynamic, &model, &machine, &worker, 0, 1000, 1000).buffers;
	double none = wlb_memory_stage_of(&fixed, &model, &machine, &worker, 0, 1000, 1000).buffers;
	assert_near(own - none, 2.0 * 2.0 * 2048.0 * (1000.0 + 1000.0), 1e-12);
}

static void stages_hold_the_micro_batches_in_flight(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	double layer = 4096.0 * layer_bytes_7b, last = 2.0 * 2.0 * 4096 * 4096;
	struct wlb_plan plan = plan_of(1, 1, 4, 1, 1, 16);
	for (int32_t s = 0; s < 4; s++) {
		double held = (4 - s) * 8 * layer + (s == 3 ? last : 0.0);
		assert_near(wlb_memory_stage(&plan, &model, s, 4096, 4096).activations, held, 1e-12);
	}
	/* Two of them are all there are. */
	plan.micro_batches = 2;
	assert_near(wlb_memory_stage(&plan, &model, 0, 4096, 4096).activations, 2 * 8 * layer, 1e-12);
	/* Interleaved: 2 x 3 + 4 chunks to warm up and one more, of 4 layers. */
	plan = plan_of(1, 1, 4, 1, 2, 16);
	assert_near(wlb_memory_stage(&plan, &model, 0, 4096, 4096).activations, 11 * 4 * layer, 1e-12);
	/* The embedding counts as a layer of the first chunk, of which 4 and 3 of the 11 are. */
	plan.account_for_embedding = 1;
	model.num_hidden_layers = 31;
	assert_near(wlb_memory_stage(&plan, &model, 0, 4096, 4096).activations, (7 * 3 + 4 * 4) * layer, 1e-12);
	assert_near(wlb_memory_stage(&plan, &model, 1, 4096, 4096).activations, 9 * 4 * layer, 1e-12);
	model.num_hidden_layers = 32;
	/* Context and tensor parallelism split them. */
	plan = plan_of(2, 4, 4, 1, 1, 16);
	assert_near(wlb_memory_stage(&plan, &model, 0, 4096, 4096).activations, 4 * 8 * layer / 8, 1e-12);
}

/* Every stage holds the head and the logits of its rows; one more micro-batch is in flight. The last stage keeps its
 * normed rows with the activations, the others have the rows that they receive and the gradients that they send. */
static void a_shared_head_is_on_every_stage(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	double layer = 4096.0 * layer_bytes_7b, rows = 2.0 * 4096 * 4096, tables = 0.0;
	struct wlb_plan plan = plan_of(1, 1, 4, 1, 1, 16), shared = plan;
	shared.shared_head = 1;
	for (int32_t s = 0; s < 4; s++) {
		struct wlb_memory m = wlb_memory_stage(&shared, &model, s, 4096, 4096);
		double held = (5 - s) * 8 * layer + (s == 3 ? 2.0 * rows + 3.0 * rows : 2.0 * rows / 4);
		assert_near(m.activations, held, 1e-12);
		assert_near(m.logits, 6.0 * 1024.0 * 32000.0, 1e-12);
		tables += (m.weights - wlb_memory_stage(&plan, &model, s, 4096, 4096).weights) / 2.0;
	}
	assert_near(tables, 3.0 * 4096.0 * 32000.0, 1e-12);
	model.tie_word_embeddings = 1;
	double first = wlb_memory_stage(&plan, &model, 0, 4096, 4096).weights;
	assert_near(wlb_memory_stage(&shared, &model, 0, 4096, 4096).weights, first, 1e-12);
}

static const double gib = 1024.0 * 1024.0 * 1024.0;

/* What a rank allocates, what its allocator keeps beyond that, CUDA's context, and 688 MiB for each communicator, of
 * tp, cp, pp and dp; on a CPU neither. */
static void what_is_reserved_is_more_than_what_is_allocated(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(2, 2, 4, 2, 2, 8), alone = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_machine machine = {.element_bytes = 2};
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	options.fragmentation = 0.25;
	options.context_bytes = 3.0 * gib;
	for (int32_t s = 0; s < 4; s++) {
		struct wlb_memory m = wlb_memory_stage_of(&plan, &model, &machine, &options, s, 8192, 8192);
		double sum = m.weights + m.gradients + m.optimizer + m.activations + m.logits + m.buffers;
		assert_near(m.allocated, sum, 1e-12);
		assert_near(m.fragmentation, 0.25 * sum, 1e-12);
		assert_near(m.runtime, 3.0 * gib + 4.0 * 688.0 / 1024.0 * gib, 1e-12);
		assert_near(m.reserved, 1.25 * sum + m.runtime, 1e-12);
		assert_true(m.buffers > 0.0);
	}
	assert_near(wlb_memory_stage_of(&alone, &model, &machine, &options, 0, 8192, 8192).runtime, 3.0 * gib, 1e-12);
	machine.blocking_messages = 1;
	assert_true(wlb_memory_stage_of(&plan, &model, &machine, &options, 0, 8192, 8192).runtime == 0.0);
}

/* Bytes a parameter on d ranks, of the table in Megatron-LM's docs/source/api-guide/dist_optimizer.md, 6 + 12 / d; with
 * gradients of both types 8 + 12 / d; of FSDP 16 / d, in bfloat16 alone 8 / d; with moments of bfloat16 4 + 8 / d.
 * The table's 4 + 16 / d have 4 / d of copies, which with gradients of both types are beside activations and logits,
 * and otherwise are not: a window of 1 token has less of these, one of 4,096 tokens more. */
static void states_depend_on_how_a_trainer_keeps_them(void **state)
{
	(void)state;
	const struct wlb_machine bfloat16 = {.element_bytes = 2};
	static const struct {
		int gradient_bytes, keep_gradients, gather_masters, zero_stage, optimizer_bytes;
		double bytes, copies;
	} cases[] = {
		{2, 0, 0, 1, 12, 4.0 + 12.0 / 8, 4.0 / 8},
		{4, 0, 0, 1, 12, 6.0 + 12.0 / 8, 0.0},
		{4, 1, 0, 1, 12, 8.0 + 12.0 / 8, 0.0},
		{2, 1, 0, 1, 12, 4.0 + 16.0 / 8, 0.0},
		{4, 0, 1, 1, 12, 6.0 + 12.0 / 8, 0.0},
		{4, 0, 1, 3, 12, 16.0 / 8, 0.0},
		{2, 0, 1, 3, 12, 16.0 / 8, 0.0},
		{4, 0, 0, 3, 12, 18.0 / 8, 0.0},
		{2, 0, 0, 1, 8, 4.0 + 8.0 / 8, 0.0},
		{2, 0, 1, 3, 6, 8.0 / 8, 0.0},
		{2, 0, 0, 0, 12, 16.0, 4.0},
	};
	struct wlb_model model = llama_7b();
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		int tokens = i % 2 == 0 ? 4096 : 1;
		struct wlb_plan plan = plan_of(1, 1, 1, 8, 1, 1);
		struct wlb_cost_options options;
		wlb_cost_options_init(&options);
		plan.zero_stage = cases[i / 2].zero_stage;
		options.gradient_bytes = cases[i / 2].gradient_bytes;
		options.keep_gradients = cases[i / 2].keep_gradients;
		options.gather_masters = cases[i / 2].gather_masters;
		options.optimizer_bytes = cases[i / 2].optimizer_bytes;
		struct wlb_memory m = wlb_memory_stage_of(&plan, &model, &bfloat16, &options, 0, tokens, tokens);
		double passes = m.activations + m.logits, beyond = cases[i / 2].copies * parameters_7b - passes;
		assert_near(m.weights + m.gradients + m.optimizer,
		            cases[i / 2].bytes * parameters_7b + (beyond > 0.0 ? beyond : 0.0), 1e-12);
		assert_int_equal(beyond > 0.0, cases[i / 2].copies > 0.0 && (tokens == 1 || plan.zero_stage == 0));
	}
}

/* torch.autograd.graph.saved_tensors_hooks of transformers 5.24: a layer of LlamaForCausalLM of bfloat16 with
 * hidden_size 256, 8 heads of 32, 2 of keys and values, intermediate_size 512, windows of 128 tokens. Eager attention
 * keeps 16,392 bytes a token, scaled_dot_product_attention 9,512; 8 and 40 of these are roots of mean squares and
 * sums of softmaxes, which the model does not count. */
static void an_eager_layer_keeps_what_pytorch_keeps(void **state)
{
	(void)state;
	const struct wlb_machine bfloat16 = {.element_bytes = 2};
	struct wlb_model model = llama_7b();
	model.hidden_size = 256;
	model.intermediate_size = 512;
	model.num_attention_heads = 8;
	model.num_key_value_heads = 2;
	model.head_dim = 32;
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	plan.recompute = WLB_RECOMPUTE_NONE;
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	options.eager = options.unfused_attention = 1;
	double ends = 128.0 * 2.0 * 2.0 * 256.0; /* the last norm and the head */
	double kept = wlb_memory_stage_of(&plan, &model, &bfloat16, &options, 0, 128, 128).activations - ends;
	assert_near(kept / (32.0 * 128.0), 16392.0 - 8.0, 1e-12);
	options.unfused_attention = 0;
	kept = wlb_memory_stage_of(&plan, &model, &bfloat16, &options, 0, 128, 128).activations - ends;
	assert_near(kept / (32.0 * 128.0), 9512.0 - 40.0, 1e-12);
}

static double kept_bytes(struct wlb_plan *plan, const struct wlb_cost_options *options, int modules)
{
	const struct wlb_machine bfloat16 = {.element_bytes = 2};
	plan->recompute = (enum wlb_recompute)modules;
	return wlb_memory_stage_of(plan, &deepseek_v3, &bfloat16, options, 0, 1000, 1000).activations;
}

/* Bytes of a token that each of 61 layers does not keep, less those of the one that is being recomputed. */
static void modules_are_not_kept(void **state)
{
	(void)state;
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	const double experts = 58.0 / 61;
	const struct {
		int module;
		double elements;
	} freed[] = {
		{WLB_RECOMPUTE_CORE_ATTN, 0.0}, /* a fused kernel keeps no scores */
		{WLB_RECOMPUTE_LAYERNORM, 2.0 * 7168},
		{WLB_RECOMPUTE_MOE_ACT, experts * 8 * 2048},
		{WLB_RECOMPUTE_MLP, 3.0 / 61 * 3 * 18432},
		{WLB_RECOMPUTE_SHARED_EXPERTS, experts * 3 * 2048},
		{WLB_RECOMPUTE_MOE, experts * (3.0 * 9 * 2048 + 2.0 * 8 * 7168)},
		{WLB_RECOMPUTE_ACT, experts * 9 * 2048 + 3.0 / 61 * 18432},
		{WLB_RECOMPUTE_MLA_UP_PROJ, 3.0 * 128 * 160},
	};
	double all = kept_bytes(&plan, &options, WLB_RECOMPUTE_NONE);
	for (size_t i = 0; i < sizeof(freed) / sizeof(freed[0]); i++)
		assert_near(all - kept_bytes(&plan, &options, freed[i].module) + 1.0,
		            1000.0 * 60 * 2.0 * freed[i].elements + 1.0, 1e-9);
	options.fp8 =
		WLB_FP8_MXFP8; /* inputs of products have a byte, and one of 32 for scales, of which nothing is left */
	all = kept_bytes(&plan, &options, WLB_RECOMPUTE_NONE);
	assert_near(all - kept_bytes(&plan, &options, WLB_RECOMPUTE_MOE_ACT),
	            1000.0 * 60 * 33.0 / 32 * freed[2].elements, 1e-9);
	options.unfused_attention = 1;
	double scores =
		kept_bytes(&plan, &options, WLB_RECOMPUTE_NONE) - kept_bytes(&plan, &options, WLB_RECOMPUTE_CORE_ATTN);
	assert_near(scores, 1000.0 * 60 * 5.0 * 128 * 1000, 1e-9);
}

/* What the layout search looks at: no stage between the two needs more. */
static void the_first_or_the_last_stage_needs_most(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(1, 1, 4, 1, 1, 8);
	for (int turn = 0; turn < 2; turn++) {
		double total[4];
		for (int32_t s = 0; s < 4; s++)
			total[s] = wlb_memory_stage(&plan, &model, s, 32768, 32768).reserved;
		int most = turn == 0 ? 0 : 3; /* micro-batches in flight, then logits */
		for (int32_t s = 0; s < 4; s++)
			assert_true(s == most || total[s] < total[most]);
		model.vocab_size = 4000000;
	}
}

/* Llama-2-70B does not fit 8 GPUs of 80 GB for training; 64 hold its states with ZeRO-1. */
static void llama_70b_needs_more_than_a_node(void **state)
{
	(void)state;
	struct wlb_model model = llama_70b();
	struct wlb_plan node = plan_of(8, 1, 1, 1, 1, 8), eight = plan_of(8, 1, 8, 1, 1, 8);
	assert_true(wlb_memory_stage(&node, &model, 0, 4096, 4096).reserved > 150e9);
	struct wlb_memory m = wlb_memory_stage(&eight, &model, 0, 4096, 4096);
	assert_near(m.weights + m.gradients + m.optimizer, 18.0 * parameters_70b / 64, 0.03);
	assert_true(m.reserved < 40e9);
}

/* Every rank holds all experts, cut as an MLP is; the matrix that chooses them is whole. A token has rows of two
 * experts, whole before and after them, and the gate, up and product of both. */
static void a_stage_holds_all_experts(void **state)
{
	(void)state;
	const struct wlb_model *model = &mixtral_8x7b;
	struct wlb_plan plan = plan_of(2, 1, 1, 1, 1, 1);
	plan.zero_stage = 0;
	struct wlb_memory m = wlb_memory_stage(&plan, model, 0, 4096, 4096);
	double whole = 32.0 * (2 * 4096 + 8 * 4096) + 4096; /* norms and choices */
	assert_near(m.weights, 2.0 * (((double)wlb_model_parameters(model) - whole) / 2.0 + whole), 1e-12);
	double token = 4 * 4096 + 2 * 4096 + 2 * 1024 + 2 * 3 * 14336 + 2 * 2 * 4096 * 2,
	       last = 2.0 * 2048 * 2.0 * 4096;
	assert_near(m.activations, 32.0 * 2048 * 2.0 * token + last, 1e-12);
	/* Weighted before their last product, experts' rows are kept before them alone. */
	const struct wlb_machine bfloat16 = {.element_bytes = 2};
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	options.weighted_experts = 1;
	m = wlb_memory_stage_of(&plan, model, &bfloat16, &options, 0, 4096, 4096);
	assert_near(m.activations, 32.0 * 2048 * 2.0 * (token - 2 * 4096 * 2) + last, 1e-12);
	/* In 8 bits are the inputs of attention's products, of which its output is kept twice, and of the experts'. */
	options.fp8 = WLB_FP8_TENSORWISE;
	m = wlb_memory_stage_of(&plan, model, &bfloat16, &options, 0, 4096, 4096);
	double less = 4096 + 2 * 4096 * 2 + 2 * 14336 - 4096;
	assert_near(m.activations, 32.0 * 2048 * (2.0 * (token - 2 * 4096 * 2) - less) + last, 1e-12);
}

/* Four of eight ranks divide the experts, of which two hold the same ones. A rank has its share of the optimizer's
 * states of all parameters, whoever divides them. */
static void ranks_hold_their_experts(void **state)
{
	(void)state;
	const struct wlb_model *model = &mixtral_8x7b;
	struct wlb_plan plan = plan_of(1, 2, 1, 4, 1, 1);
	double all = (double)wlb_model_parameters(model), experts = 32.0 * 8 * 3 * 4096 * 14336;
	double held = all - experts + experts / 4;
	plan.ep = 4;
	for (plan.zero_stage = 0; plan.zero_stage < 4; plan.zero_stage++) {
		struct wlb_memory m = wlb_memory_stage(&plan, model, 0, 8192, 4096);
		assert_near(m.weights, 2.0 * (plan.zero_stage < 3 ? held : all / 8), 1e-12);
		assert_near(m.gradients, 4.0 * (plan.zero_stage < 2 ? held : all / 8), 1e-12);
		assert_near(m.optimizer, 12.0 * (plan.zero_stage < 1 ? held : all / 8), 1e-12);
	}
}

/* The first 3 layers have no experts: they are those of the first stage's first chunk. All stages and tensor-parallel
 * ranks have all parameters; what is whole on each of the latter is counted there. */
static void stages_hold_the_layers_without_experts(void **state)
{
	(void)state;
	const struct wlb_model *model = &deepseek_v3;
	struct wlb_plan plan = plan_of(2, 1, 4, 1, 4, 4);
	double sum = 0.0, stages[4];
	plan.zero_stage = 0;
	for (int s = 0; s < 4; s++)
		sum += stages[s] = wlb_memory_stage(&plan, model, s, 4096, 4096).weights / 2.0;
	double whole = 58.0 * 256 * 7168 + 61.0 * (2112 * 7168 + 2 * 7168 + 2048) + 7168;
	assert_near(2.0 * sum - whole, (double)wlb_model_parameters(model), 1e-12);
	double latent = 2112.0 * 7168, vectors = 2 * 7168 + 2048, table = 129280.0 * 7168 / 2;
	double dense = ((double)wlb_model_dense_layer_parameters(model) - latent) / 2 + latent + vectors;
	assert_near(stages[0], 13.0 * stages[1] / 15.0 + 3.0 * dense + table, 1e-12);
}

/* Nemotron: two matrices of an MLP, norms with biases. */
static void a_family_without_a_gate_keeps_less(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	model.family = WLB_FAMILY_NEMOTRON;
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 4);
	double n = 4096.0, norms = 4096.0 * (2 * 32 + 1), gates = 32.0 * 4096 * 11008;
	struct wlb_memory m = wlb_memory_stage(&plan, &model, 0, 4096, 4096);
	assert_near(m.weights, 2.0 * (parameters_7b - gates + norms), 1e-12);
	assert_near(m.activations, 32.0 * n * (layer_bytes_7b - 2.0 * 11008) + 2.0 * 2.0 * n * 4096.0, 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_of_llama_7b_are_18_bytes_a_parameter),
		cmocka_unit_test(stages_and_tensor_ranks_hold_the_whole_of_llama_70b),
		cmocka_unit_test(activations_are_those_of_korthikanti),
		cmocka_unit_test(a_worker_has_logits_of_some_rows),
		cmocka_unit_test(dynamic_context_parallelism_reserves_the_keys_of_all_ranks),
		cmocka_unit_test(a_shared_head_is_on_every_stage),
		cmocka_unit_test(stages_hold_the_micro_batches_in_flight),
		cmocka_unit_test(what_is_reserved_is_more_than_what_is_allocated),
		cmocka_unit_test(states_depend_on_how_a_trainer_keeps_them),
		cmocka_unit_test(an_eager_layer_keeps_what_pytorch_keeps),
		cmocka_unit_test(modules_are_not_kept),
		cmocka_unit_test(the_first_or_the_last_stage_needs_most),
		cmocka_unit_test(llama_70b_needs_more_than_a_node),
		cmocka_unit_test(a_stage_holds_all_experts),
		cmocka_unit_test(ranks_hold_their_experts),
		cmocka_unit_test(stages_hold_the_layers_without_experts),
		cmocka_unit_test(a_family_without_a_gate_keeps_less),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
