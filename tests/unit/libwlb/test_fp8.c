/* Tests products in 8 bits: what they gain, what stays as it is, what the casts cost, and machines whose fast links
 * connect several nodes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

static struct wlb_machine with_fp8(void)
{
	struct wlb_machine machine = h100();
	machine.fp8_rate = 1.75;
	machine.mxfp8_rate = 1.5;
	return machine;
}

static struct wlb_cost_options options_of(enum wlb_fp8 fp8)
{
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	options.fp8 = fp8;
	return options;
}

static void products_take_the_rate_of_their_kind(void **state)
{
	(void)state;
	static const double rates[] = {1.0, 1.75, 1.75, 1.5};
	struct wlb_machine machine = with_fp8();
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(2, 1, 1, 1, 1, 1);
	struct wlb_cost_options usual = options_of(WLB_FP8_NONE);
	const struct wlb_layer_cost of_usual = {&model, &machine, &usual, &plan};
	struct wlb_seconds all = wlb_layer_products_s(&of_usual, 4096);
	for (int fp8 = WLB_FP8_NONE; fp8 <= WLB_FP8_MXFP8; fp8++) {
		struct wlb_cost_options options = options_of((enum wlb_fp8)fp8);
		const struct wlb_layer_cost cost = {&model, &machine, &options, &plan};
		struct wlb_seconds products = wlb_layer_products_s(&cost, 4096);
		assert_near(products.forward, all.forward / rates[fp8], 1e-12);
		assert_near(products.backward, all.backward / rates[fp8], 1e-12);
		double saved_s = wlb_layer_last_s(&of_usual, 4096) - wlb_layer_last_s(&cost, 4096);
		assert_near(saved_s, (1.0 - 1.0 / rates[fp8]) * wlb_machine_gemm_s(&machine, 4096, 5504, 4096), 1e-12);
		struct wlb_seconds least = wlb_layer_least_s(&cost, 4096),
				   others = wlb_layer_elementwise_s(&cost, 4096);
		assert_true(least.forward <= (products.forward + others.forward) * (1.0 + 1e-12));
		assert_true(least.backward <= (products.backward + others.backward) * (1.0 + 1e-12));
	}
	/* The time of a tile that is not of its depth stays, and the result is written in 2 bytes. */
	machine.processors = 132;
	machine.gemm_tile_rows = 128;
	machine.gemm_tile_columns = 256;
	machine.gemm_tile_depth = 320.0;
	double wide_s = wlb_machine_fp8_gemm_s(&machine, WLB_FP8_NONE, 8192, 8192, 8192);
	double gain = wide_s / wlb_machine_fp8_gemm_s(&machine, WLB_FP8_DELAYED, 8192, 8192, 8192);
	assert_near(gain, (8192.0 + 320.0) / (8192.0 / 1.75 + 320.0), 1e-12);
	machine.memory_bytes_per_s = 1e12;
	assert_near(wlb_machine_fp8_gemm_s(&machine, WLB_FP8_DELAYED, 1, 8192, 8192),
	            (8192.0 + 8192.0 * 8192.0 + 2.0 * 8192.0) / machine.memory_bytes_per_s, 1e-12);
}

/* Attention, head, embedding and the choice of experts have no products in 8 bits. */
static void only_products_of_layers_gain(void **state)
{
	(void)state;
	struct wlb_machine machine = with_fp8();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options usual = options_of(WLB_FP8_NONE), fp8 = options_of(WLB_FP8_TENSORWISE);
	const struct wlb_layer_cost before = {&mixtral_8x7b, &machine, &usual, &plan},
				    after = {&mixtral_8x7b, &machine, &fp8, &plan};
	for (int unfused = 0; unfused <= 1; unfused++) {
		usual.unfused_attention = fp8.unfused_attention = unfused;
		assert_near(wlb_layer_attention_s(&after, 4096, 4096).forward,
		            wlb_layer_attention_s(&before, 4096, 4096).forward, 0.0);
		assert_near(wlb_layer_attention_s(&after, 4096, 4096).backward,
		            wlb_layer_attention_s(&before, 4096, 4096).backward, 0.0);
	}
	assert_near(wlb_head_s(&after, 4096).backward, wlb_head_s(&before, 4096).backward, 0.0);
	assert_near(wlb_embedding_s(&after, 4096).backward, wlb_embedding_s(&before, 4096).backward, 0.0);
	double router_s = wlb_machine_gemm_s(&machine, 4096, 4096, 8);
	double gained_s = wlb_layer_products_s(&after, 4096).forward - router_s;
	assert_near(gained_s, (wlb_layer_products_s(&before, 4096).forward - router_s) / 1.75, 1e-9);
}

/* Forward the inputs of 4 products, backward the gradients of their outputs: each is read in 2 bytes and written twice
 * in one; for a scale of its own it is read once more. */
static void casts_take_their_traffic(void **state)
{
	(void)state;
	static const double bytes[] = {0.0, 4.0, 6.0, 4.0};
	struct wlb_machine machine = with_fp8();
	machine.operation_s = 1e-3;
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options usual = options_of(WLB_FP8_NONE);
	const struct wlb_layer_cost of_usual = {&model, &machine, &usual, &plan};
	struct wlb_seconds before = wlb_layer_elementwise_s(&of_usual, 1000);
	for (int fp8 = WLB_FP8_DELAYED; fp8 <= WLB_FP8_MXFP8; fp8++) {
		struct wlb_cost_options options = options_of((enum wlb_fp8)fp8);
		const struct wlb_layer_cost cost = {&model, &machine, &options, &plan};
		struct wlb_seconds after = wlb_layer_elementwise_s(&cost, 1000);
		double element_s = 1000.0 * bytes[fp8] / machine.memory_bytes_per_s;
		assert_near(after.forward - before.forward, element_s * (3.0 * 4096 + 11008) + 4e-3, 1e-9);
		assert_near(after.backward - before.backward, element_s * (5.0 * 4096 + 2.0 * 11008) + 4e-3, 1e-9);
	}
}

static struct wlb_memory memory_of(const struct wlb_plan *plan, const struct wlb_cost_options *options)
{
	const struct wlb_machine machine = h100();
	const struct wlb_model model = llama_7b();
	return wlb_memory_stage_of(plan, &model, &machine, options, 0, 1000, 1000);
}

/* A weight's two casts are beside it or take its place; an input of a product is kept in a byte, but attention's output
 * is kept for attention too. */
static void memory_has_casts_and_inputs(void **state)
{
	(void)state;
	struct wlb_plan plan = plan_of(1, 1, 1, 8, 1, 1);
	struct wlb_cost_options usual = options_of(WLB_FP8_NONE), fp8 = options_of(WLB_FP8_DELAYED);
	fp8.fp8_inputs = 0;
	struct wlb_memory before = memory_of(&plan, &usual), after = memory_of(&plan, &fp8);
	double matrices = 32.0 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008);
	assert_near(after.weights - before.weights, 2.0 * matrices, 1e-12);
	assert_near(after.activations, before.activations, 0.0);
	fp8.fp8_parameters = fp8.fp8_inputs = 1;
	after = memory_of(&plan, &fp8);
	assert_near(after.weights, before.weights, 1e-12);
	assert_near(before.activations - after.activations, 32.0 * 1000.0 * (2.0 * 4096 + 11008 - 4096), 1e-12);
	plan.zero_stage = 3;
	fp8.fp8_parameters = 0;
	assert_near(memory_of(&plan, &fp8).weights, memory_of(&plan, &usual).weights, 0.0);
}

/* Processors with MXFP8 multiply by a weight and by its transpose without a copy of it; MXFP8 itself has it scaled
 * along either dimension, each with a byte of scale for 32 elements, as inputs have. */
static void later_processors_keep_one_cast(void **state)
{
	(void)state;
	const struct wlb_machine machine = with_fp8();
	const struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(1, 1, 1, 8, 1, 1);
	static const double copies[] = {1.0, 1.0, 1.0, 2.0 * 33.0 / 32.0}, inputs[] = {2.0, 1.0, 1.0, 33.0 / 32.0};
	double matrices = 32.0 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008);
	struct wlb_cost_options usual = options_of(WLB_FP8_NONE);
	double without = memory_of(&plan, &usual).activations;
	for (int fp8 = WLB_FP8_DELAYED; fp8 <= WLB_FP8_MXFP8; fp8++) {
		struct wlb_cost_options options = options_of((enum wlb_fp8)fp8);
		struct wlb_memory m = wlb_memory_stage_of(&plan, &model, &machine, &options, 0, 1000, 1000);
		double all = 2.0 * (double)wlb_model_parameters(&model);
		assert_near(m.weights, all + copies[fp8] * matrices, 1e-12);
		double less = (2.0 - inputs[fp8]) * (2.0 * 4096 + 11008) - inputs[fp8] * 4096;
		assert_near(without - m.activations, 32.0 * 1000.0 * less, 1e-12);
		options.fp8_parameters = 1;
		m = wlb_memory_stage_of(&plan, &model, &machine, &options, 0, 1000, 1000);
		assert_near(m.weights, all + (copies[fp8] - 2.0) * matrices, 1e-12);
	}
}

static double exposed_dp_s(const struct wlb_model *model, int ep, enum wlb_fp8 fp8, int fp8_parameters)
{
	const struct wlb_machine machine = with_fp8();
	struct wlb_plan plan = plan_of(1, 1, 1, 16, 1, 1);
	struct wlb_sim_options options;
	int64_t tokens = 4096;
	plan.ep = ep;
	wlb_sim_options_init(&options, &plan);
	options.cost = options_of(fp8);
	options.cost.fp8_parameters = fp8_parameters;
	options.cost.overlap_gradients = options.cost.overlap_parameters = 0;
	struct wlb_step step = equal_step(16, &tokens, 1);
	double dp_s = simulate(model, &machine, &options, &step).time.dp_s;
	free_step(&step);
	return dp_s;
}

static void weights_are_gathered_in_8_bits_where_the_trainer_keeps_them_so(void **state)
{
	(void)state;
	const struct wlb_machine machine = with_fp8();
	double matrices = 32.0 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008);
	double less_s =
		exposed_dp_s(&llama_2_7b, 1, WLB_FP8_DELAYED, 0) - exposed_dp_s(&llama_2_7b, 1, WLB_FP8_DELAYED, 1);
	assert_near(less_s, wlb_machine_gather_s(&machine, 16, 8, 0, matrices), 0.01);
	assert_near(exposed_dp_s(&llama_2_7b, 1, WLB_FP8_MXFP8, 1), exposed_dp_s(&llama_2_7b, 1, WLB_FP8_MXFP8, 0),
	            0.0);
	assert_near(exposed_dp_s(&llama_2_7b, 1, WLB_FP8_NONE, 1), exposed_dp_s(&llama_2_7b, 1, WLB_FP8_NONE, 0), 0.0);
}

/* Eight of sixteen ranks divide the experts: a rank has casts of its own, and gathers them from one other. */
static void ranks_cast_and_gather_their_own_experts(void **state)
{
	(void)state;
	const struct wlb_machine machine = with_fp8();
	struct wlb_plan plan = plan_of(1, 1, 1, 16, 1, 1);
	struct wlb_cost_options usual = options_of(WLB_FP8_NONE), fp8 = options_of(WLB_FP8_DELAYED);
	double experts = 32.0 * 3.0 * 4096 * 14336, others = 32.0 * 4096 * (2.0 * 4096 + 2.0 * 1024 + 8.0);
	plan.ep = 8;
	fp8.fp8_parameters = 0;
	double before = wlb_memory_stage_of(&plan, &mixtral_8x7b, &machine, &usual, 0, 1000, 1000).weights;
	double after = wlb_memory_stage_of(&plan, &mixtral_8x7b, &machine, &fp8, 0, 1000, 1000).weights;
	assert_near(after - before, experts + others, 1e-12);
	double less_s =
		exposed_dp_s(&mixtral_8x7b, 8, WLB_FP8_DELAYED, 0) - exposed_dp_s(&mixtral_8x7b, 8, WLB_FP8_DELAYED, 1);
	assert_near(less_s,
	            wlb_machine_gather_s(&machine, 16, 8, 0, others) + wlb_machine_gather_s(&machine, 2, 1, 0, experts),
	            0.01);
}

/* Of 4 collectives forward and 6 backward 2 and 4 gather what is cast; those of head and embedding do not. */
static void tensor_parallel_ranks_gather_casts(void **state)
{
	(void)state;
	struct wlb_machine machine = with_fp8();
	machine.node_link.latency_s = 0.0;
	const struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(8, 1, 1, 1, 1, 1);
	struct wlb_sim_options options;
	int64_t tokens = 4096;
	struct wlb_step step = equal_step(1, &tokens, 1);
	double tp_s[2][2];
	for (int fp8 = 0; fp8 <= 1; fp8++)
		for (int whole = 0; whole <= 1; whole++) {
			wlb_sim_options_init(&options, &plan);
			options.cost = options_of(fp8 ? WLB_FP8_DELAYED : WLB_FP8_NONE);
			options.cost.tp_overlap = (struct wlb_overlap){0.0, 0.0};
			options.cost.whole_rows = whole;
			tp_s[fp8][whole] = simulate(&model, &machine, &options, &step).time.tp_s;
		}
	free_step(&step);
	double gather_s = wlb_machine_gather_s(&machine, 8, 8, 0, 2.0 * 4096 * 4096);
	assert_near(tp_s[0][0] - tp_s[1][0], 32.0 * 6.0 * gather_s / 2.0, 1e-9);
	assert_near(tp_s[1][1], tp_s[0][1], 0.0);
}

static void a_machine_without_a_speed_is_refused_by_its_name(void **state)
{
	(void)state;
	struct wlb_error error = {""};
	struct wlb_machine machine = h100();
	const struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	options.cost.fp8 = WLB_FP8_DELAYED;
	assert_null(wlb_sim_new(&model, &machine, &options, &error));
	assert_non_null(strstr(error.message, "H100 has no speed of these products: its file must have fp8_rate"));
	struct wlb_search_options search;
	wlb_search_options_init(&search, 1, 4096, 8);
	search.cost.fp8 = WLB_FP8_MXFP8;
	machine.fp8_rate = 1.75;
	assert_null(wlb_search(&model, &machine, &search, &error));
	assert_non_null(strstr(error.message, "must have mxfp8_rate"));
	machine.fp8_rate = 0.5;
	assert_int_equal(wlb_machine_check(&machine, &error), -1);
	assert_non_null(strstr(error.message, "fp8_rate is 0.5: it must be 0, or 1 at least"));
	struct wlb_cost_options worker;
	wlb_cost_options_worker(&worker, &machine);
	worker.fp8 = WLB_FP8_DELAYED;
	assert_int_equal(wlb_cost_options_check(&worker, &error), -1);
	assert_non_null(strstr(error.message, "wlb-worker"));
}

static struct wlb_sim_time time_on(const struct wlb_machine *machine, struct wlb_plan plan)
{
	const struct wlb_model model = llama_7b();
	struct wlb_sim_options options;
	int64_t tokens = 4096;
	wlb_sim_options_init(&options, &plan);
	options.cost.overlap_gradients = options.cost.overlap_parameters = options.cost.overlap_pp = 0;
	struct wlb_step step = equal_step(plan.micro_batches * plan.layout.dp, &tokens, 1);
	struct wlb_sim_time time = simulate(&model, machine, &options, &step).time;
	free_step(&step);
	return time;
}

/* Two nodes of 4 whose GPUs one NVLink connects are as fast as a node of 8; without it they are slower. */
static void a_fast_link_connects_several_nodes(void **state)
{
	(void)state;
	const struct wlb_plan plans[] = {plan_of(8, 1, 1, 2, 1, 2), plan_of(2, 4, 1, 2, 1, 2),
	                                 plan_of(1, 1, 8, 2, 1, 8), plan_of(1, 1, 1, 8, 1, 1)};
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct wlb_machine eight = h100(), linked = h100(), four = h100();
		linked.gpus_per_node = four.gpus_per_node = 4;
		linked.link_nodes = 2;
		double eight_s = time_on(&eight, plans[i]).step_s;
		assert_near(time_on(&linked, plans[i]).step_s, eight_s, 1e-12);
		assert_true(time_on(&four, plans[i]).step_s > eight_s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_take_the_rate_of_their_kind),
		cmocka_unit_test(only_products_of_layers_gain),
		cmocka_unit_test(casts_take_their_traffic),
		cmocka_unit_test(memory_has_casts_and_inputs),
		cmocka_unit_test(later_processors_keep_one_cast),
		cmocka_unit_test(weights_are_gathered_in_8_bits_where_the_trainer_keeps_them_so),
		cmocka_unit_test(ranks_cast_and_gather_their_own_experts),
		cmocka_unit_test(tensor_parallel_ranks_gather_casts),
		cmocka_unit_test(a_machine_without_a_speed_is_refused_by_its_name),
		cmocka_unit_test(a_fast_link_connects_several_nodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
