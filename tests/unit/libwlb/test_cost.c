/* Tests the parts of a step's cost. Each test guards against a defect that the cost model once had. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "libwlb/cost/halves.h"
#include "libwlb/cost/layer.h"
#include "libwlb/cost/plan_sizes.h"
#include "tests/unit/libwlb/models.h"
#include "tests/unit/libwlb/sim_cases.h"

static void assert_near(double got, double expected, double tolerance)
{
	if (!(fabs(got - expected) <= tolerance * fabs(expected)))
		fail_msg("%.12g is not %.12g", got, expected);
}

/* H100 with its tiles. */
static struct wlb_machine tiled(void)
{
	struct wlb_machine machine = h100();
	machine.gemm_efficiency = 0.58;
	machine.processors = 132;
	machine.collective_processors = 16;
	machine.gemm_tile_rows = 128;
	machine.gemm_tile_columns = 256;
	machine.gemm_tile_depth = 320.0;
	return machine;
}

static double gemm_flops_per_s(const struct wlb_machine *machine, double rows, double depth, double columns)
{
	return 2.0 * rows * depth * columns / wlb_machine_gemm_s(machine, rows, depth, columns);
}

/* The defect: a product of 256 rows cost as much for each row as one of 8,192. */
static void a_product_costs_by_its_shape(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	double large = gemm_flops_per_s(&machine, 8192, 8192, 8192), most = wlb_machine_gemm_most(&machine);
	assert_true(large > 0.9 * most && large < most);
	assert_true(gemm_flops_per_s(&machine, 256, 8192, 4096) < 0.8 * large);
	assert_true(gemm_flops_per_s(&machine, 8192, 128, 8192) < 0.5 * large);
	assert_true(gemm_flops_per_s(&machine, 8192, 8192, 128) < 0.8 * large);
	/* One tile of 132 processors more than a wave takes as long as a second one. */
	double wave_s = wlb_machine_gemm_s(&machine, 132 * 128, 8192, 256);
	assert_true(wlb_machine_gemm_s(&machine, 132 * 128 + 1, 8192, 256) > 1.2 * wave_s);
	/* Few rows read the whole matrix. */
	assert_true(wlb_machine_gemm_s(&machine, 1, 8192, 8192) >= 2.0 * 8192 * 8192 / machine.memory_bytes_per_s);
}

/* Llama 3 405B at 8,192 tokens: with 32 context ranks each has 256 tokens, too few to use a GPU fully. */
static void small_shards_waste_the_gpu(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_70b();
	struct wlb_cost_options options;
	struct wlb_plan whole = plan_of(8, 1, 1, 1, 1, 1), cut = plan_of(2, 32, 1, 1, 1, 1);
	wlb_cost_options_init(&options);
	model.hidden_size = 16384;
	model.intermediate_size = 53248;
	model.num_attention_heads = 128;
	struct wlb_layer_cost a = {&model, &machine, &options, &whole}, b = {&model, &machine, &options, &cut};
	struct wlb_seconds few = wlb_layer_products_s(&b, 256), many = wlb_layer_products_s(&a, 8192);
	/* A GPU of the second has 1 / 8 of the first's FLOPs, and takes longer than that. */
	assert_true((few.forward + few.backward) * 8.0 > 1.15 * (many.forward + many.backward));
}

static struct wlb_sim_result simulate_model(struct wlb_model model, const struct wlb_machine *machine,
                                            const struct wlb_plan *plan, void (*change)(struct wlb_sim_options *))
{
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, plan);
	if (change != NULL)
		change(&options);
	int64_t tokens = 4096;
	struct wlb_step step = equal_step(plan->micro_batches, &tokens, 1);
	struct wlb_sim_result result = simulate(&model, machine, &options, &step);
	free_step(&step);
	return result;
}

static struct wlb_sim_result simulate_7b(const struct wlb_machine *machine, const struct wlb_plan *plan,
                                         void (*change)(struct wlb_sim_options *))
{
	return simulate_model(llama_7b(), machine, plan, change);
}

static void run_the_worker(struct wlb_sim_options *options)
{
	options->cost.trainer = WLB_COST_WORKER;
}

static void run_the_worker_over_nccl(struct wlb_sim_options *options)
{
	struct wlb_machine machine = h100();
	wlb_cost_options_worker(&options->cost, &machine);
}

/* The defect: with short documents on 8 context-parallel ranks, 7 % of a step was missing. */
static void the_worker_orders_gathered_keys(void **state)
{
	(void)state;
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 2, 1, 1, 1, 3);
	plan.recompute = WLB_RECOMPUTE_NONE;
	machine.node_link = (struct wlb_link){.bytes_per_s = 1e15};
	machine.operation_s = 1e-3;
	/* Keys and values of all tokens: read and written forward; backward the same, and set to 0 first. The rank's
	 * own, a half: copied to be sent, and their gradients back. */
	double bytes = 4096.0 * 2.0 * 4096.0 * 2.0, calls = 5.0;
	double layer_s = calls * machine.operation_s + (5.0 + 2.0 * 2.0 / 2.0) * bytes / machine.memory_bytes_per_s;
	assert_near(simulate_7b(&machine, &plan, run_the_worker).time.cp_s, 3.0 * 32.0 * layer_s, 1e-3);
	plan = plan_of(1, 1, 1, 1, 1, 3);
	assert_true(simulate_7b(&machine, &plan, run_the_worker).time.cp_s == 0.0);
}

static void hide_nothing(struct wlb_sim_options *options)
{
	options->cost.tp_overlap = (struct wlb_overlap){0};
	options->cost.overlap_gradients = options->cost.overlap_parameters = 0;
}

static void hide_all_of_tp(struct wlb_sim_options *options)
{
	options->cost.tp_overlap = (struct wlb_overlap){1.0, 1.0};
}

static void reduce_in_bfloat16(struct wlb_sim_options *options)
{
	options->cost.overlap_gradients = 0;
	options->cost.gradient_bytes = 2;
}

static void gather_after_the_step(struct wlb_sim_options *options)
{
	options->cost.overlap_parameters = 0;
}

static void reduce_after_the_step(struct wlb_sim_options *options)
{
	options->cost.overlap_gradients = 0;
}

/* Each kind of communication was exposed, or hidden, without a choice. */
static void every_overlap_is_an_option(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(8, 1, 1, 16, 1, 4);
	struct wlb_sim_result base = simulate_7b(&machine, &plan, NULL);
	struct wlb_sim_result none = simulate_7b(&machine, &plan, hide_nothing);
	struct wlb_sim_result tp = simulate_7b(&machine, &plan, hide_all_of_tp);
	struct wlb_sim_result gather = simulate_7b(&machine, &plan, gather_after_the_step);
	struct wlb_sim_result reduce = simulate_7b(&machine, &plan, reduce_after_the_step);
	struct wlb_sim_result bfloat16 = simulate_7b(&machine, &plan, reduce_in_bfloat16);
	assert_true(tp.time.tp_s < base.time.tp_s && base.time.tp_s < 0.5 * none.time.tp_s);
	assert_true(tp.time.tp_s > 0.0); /* at both ends of the model */
	assert_true(base.time.dp_s < gather.time.dp_s && base.time.dp_s < reduce.time.dp_s);
	assert_near(none.time.dp_s, gather.time.dp_s + reduce.time.dp_s - base.time.dp_s, 0.2);
	assert_true(bfloat16.time.dp_s < 0.7 * reduce.time.dp_s);
}

/* Communication that is longer than what runs beside it shows. */
static void only_what_overlaps_computation_is_hidden(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(8, 1, 1, 1, 1, 4);
	machine.node_link.bytes_per_s = 1e9;
	struct wlb_sim_result hidden = simulate_7b(&machine, &plan, hide_all_of_tp);
	struct wlb_sim_result shown = simulate_7b(&machine, &plan, hide_nothing);
	assert_true(hidden.time.tp_s > 0.5 * shown.time.tp_s);
	assert_true(shown.time.tp_s - hidden.time.tp_s <= hidden.time.compute_s);
}

static void exchange_beside_attention(struct wlb_sim_options *options)
{
	options->cost.cp_overlap = (struct wlb_overlap){1.0, 1.0};
}

/* Keys and values arrive beside attention over those of other ranks, 3 quarters of what a rank computes with the first
 * and the last of 8 chunks, and hide no longer than that takes. */
static void keys_arrive_beside_later_attention(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 4, 1, 1, 1, 1);
	struct wlb_model model = llama_7b();
	struct wlb_cost_options options;
	plan.recompute = WLB_RECOMPUTE_NONE;
	wlb_cost_options_init(&options);
	const struct wlb_layer_cost cost = {&model, &machine, &options, &plan};
	struct wlb_seconds first = wlb_layer_attention_s(&cost, 512.0, 512.0);
	struct wlb_seconds last = wlb_layer_attention_s(&cost, 512.0, 4096.0);
	double attention_s = first.forward + first.backward + last.forward + last.backward;
	machine.node_link.bytes_per_s = 1e9;
	double shown_s = simulate_7b(&machine, &plan, NULL).time.cp_s;
	double hidden_s = shown_s - simulate_7b(&machine, &plan, exchange_beside_attention).time.cp_s;
	assert_near(hidden_s, 32.0 * 0.75 * attention_s, 1e-6);
	machine.node_link = (struct wlb_link){.bytes_per_s = 1e15};
	assert_true(simulate_7b(&machine, &plan, exchange_beside_attention).time.cp_s == 0.0);
}

static void scatter_keys_overlapped(struct wlb_sim_options *options)
{
	options->cost.trainer = WLB_COST_WORKER;
	options->cost.cp_overlap.backward = 1.0;
}

/* wlb-worker scatters the gradients of keys and values beside one product, and no longer than that takes. */
static void the_worker_hides_gradients_of_keys_behind_one_product(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 2, 1, 1, 1, 1);
	plan.recompute = WLB_RECOMPUTE_NONE;
	struct wlb_model model = llama_7b();
	struct wlb_cost_options worker = {.trainer = WLB_COST_WORKER};
	const struct wlb_layer_cost cost = {&model, &machine, &worker, &plan};
	double product_s = wlb_layer_output_d_w_s(&cost, 2048.0);
	assert_true(product_s > 0.0 && product_s < 0.25 * wlb_layer_products_s(&cost, 2048.0).backward);
	for (int slow = 0; slow < 2; slow++) {
		machine.node_link.bytes_per_s = slow ? 1e9 : 1e12;
		double bytes = 4096.0 * 2.0 * 4096.0 * 2.0;
		double scatter_s = wlb_machine_reduce_s(&machine, 2, 2, 0, bytes);
		double shown_s = simulate_7b(&machine, &plan, run_the_worker).time.cp_s;
		double hidden_s = shown_s - simulate_7b(&machine, &plan, scatter_keys_overlapped).time.cp_s;
		assert_int_equal(scatter_s > product_s, slow);
		assert_near(hidden_s, 32.0 * (slow ? product_s : scatter_s), 1e-6);
	}
}

static void gather_keys_overlapped(struct wlb_sim_options *options)
{
	options->cost.trainer = WLB_COST_WORKER;
	options->cost.cp_overlap.forward = 1.0;
}

/* It gathers keys and values beside the product of the queries and their rotary embedding, and no longer than these
 * take; for that keys and values are a product of their own, in the forward pass. */
static void the_worker_gathers_keys_beside_the_queries(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 2, 1, 1, 1, 1);
	plan.recompute = WLB_RECOMPUTE_NONE;
	struct wlb_model model = llama_7b();
	struct wlb_cost_options together = {.trainer = WLB_COST_WORKER}, apart = together;
	apart.cp_overlap.forward = 1.0;
	const struct wlb_layer_cost cost = {&model, &machine, &apart, &plan},
				    before = {&model, &machine, &together, &plan};
	double product_s = wlb_layer_queries_s(&cost, 2048.0);
	struct wlb_seconds products = wlb_layer_products_s(&cost, 2048.0), one = wlb_layer_products_s(&before, 2048.0);
	assert_true(product_s > 0.0 && product_s < 0.25 * products.forward);
	assert_near(product_s,
	            wlb_machine_gemm_s(&machine, 2048.0, 4096.0, 4096.0) +
	                    wlb_machine_op_s(&machine, WLB_OP_ROPE, 2048.0 * 4096.0),
	            1e-12);
	assert_true(products.forward >= one.forward && products.backward == one.backward);
	for (int slow = 0; slow < 2; slow++) {
		machine.node_link.bytes_per_s = slow ? 1e9 : 1e12;
		double gather_s = wlb_machine_gather_s(&machine, 2, 2, 0, 4096.0 * 2.0 * 4096.0 * 2.0);
		double shown_s = simulate_7b(&machine, &plan, run_the_worker).time.cp_s;
		double hidden_s = shown_s - simulate_7b(&machine, &plan, gather_keys_overlapped).time.cp_s;
		assert_int_equal(gather_s > product_s, slow);
		assert_near(hidden_s, 32.0 * (slow ? product_s : gather_s), 1e-6);
	}
	/* The same of documents on ranks of several replicas. 600 rows are two waves of tiles; apart, three. */
	plan.layout = (struct wlb_layout){1, 1, 1, 2};
	double one_s = wlb_layer_products_s(&cost, 600.0).forward;
	plan.dynamic_cp = 2;
	assert_true(wlb_layer_products_s(&cost, 600.0).forward > 1.01 * one_s);
}

static void assert_parts(const struct wlb_sim_time *t)
{
	const double *part = (const double *)t;
	for (size_t i = 0; i < sizeof(*t) / sizeof(double); i++)
		if (!(part[i] >= -1e-12))
			fail_msg("part %zu is %g", i, part[i]);
	assert_near(sum_of_parts(t), t->step_s, 1e-9);
}

/* A part below zero was left out of the report, and its seconds vanished: 126 layers on 16 stages of 2 chunks. */
static void no_part_is_negative_and_all_sum_to_the_step(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_70b();
	model.num_hidden_layers = 126;
	static const int interleaves[] = {1, 2, 3, 4, 7};
	for (size_t i = 0; i < sizeof(interleaves) / sizeof(interleaves[0]); i++)
		for (int pp = 2; pp <= 16; pp *= 2) {
			struct wlb_plan plan = plan_of(8, 1, pp, 2, interleaves[i], 2 * pp);
			struct wlb_sim_options options;
			wlb_sim_options_init(&options, &plan);
			int64_t tokens[] = {5000, 3192};
			struct wlb_step step = equal_step(4 * pp, tokens, 2);
			struct wlb_sim_result result = simulate(&model, &machine, &options, &step);
			assert_parts(&result.time);
			free_step(&step);
		}
}

/* Recomputation was of all layers or of none. */
static void some_layers_are_recomputed(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_plan none = plan_of(1, 1, 2, 1, 1, 8), half, all;
	half = all = none;
	half.recompute = all.recompute = WLB_RECOMPUTE_FULL;
	half.recompute_layers = 8;
	double all_s = simulate_7b(&machine, &all, NULL).time.recompute_s;
	assert_near(simulate_7b(&machine, &half, NULL).time.recompute_s, all_s / 2.0, 1e-9);
	struct wlb_plan selective = all;
	selective.recompute = WLB_RECOMPUTE_SELECTIVE;
	double whole_s = simulate_7b(&machine, &all, run_the_worker).time.recompute_s;
	double cheap_s = simulate_7b(&machine, &selective, run_the_worker).time.recompute_s;
	assert_true(cheap_s > 0.0);
	assert_near(simulate_7b(&machine, &half, run_the_worker).time.recompute_s, (whole_s + cheap_s) / 2.0, 1e-9);
	double most = wlb_memory_stage(&none, &model, 0, 4096, 4096).activations;
	double some = wlb_memory_stage(&half, &model, 0, 4096, 4096).activations;
	double least = wlb_memory_stage(&all, &model, 0, 4096, 4096).activations;
	assert_true(least < some && some < most);
	half.recompute_layers = 100; /* of 16 */
	assert_near(simulate_7b(&machine, &half, NULL).time.recompute_s, all_s, 1e-9);
	half.recompute_layers = -1;
	assert_int_equal(wlb_plan_check(&half, &model, NULL), -1);
}

/* Activations that are cheap to compute again are kept, or not: without that Llama 3 405B has no plan at 8K. */
static void activations_can_be_released(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(1, 1, 4, 1, 1, 8);
	struct wlb_cost_options keep, release;
	wlb_cost_options_init(&keep);
	release = keep;
	release.release_activations = 1;
	double token = 2.0 * (2 * 4096 + 11008), layers = 8.0, chunks = 4.0;
	double kept = wlb_memory_stage_of(&plan, &model, &machine, &keep, 0, 4096, 4096).activations;
	double left = wlb_memory_stage_of(&plan, &model, &machine, &release, 0, 4096, 4096).activations;
	assert_near(kept - left, chunks * layers * 4096.0 * token, 1e-12);
	keep.keep_outputs = 1;
	double outputs = wlb_memory_stage_of(&plan, &model, &machine, &keep, 0, 4096, 4096).activations - kept;
	assert_near(outputs, chunks * 4096.0 * 2.0 * 4096, 1e-12);
	struct wlb_layer_cost cost = {&model, &machine, &release, &plan};
	/* Two norms and the gated product: 7 times the widths, read and written. */
	assert_near(wlb_layer_modules_s(&cost, 4096.0),
	            4096.0 * 2.0 * (4.0 * 4096 + 3.0 * 11008) / machine.memory_bytes_per_s, 1e-12);
}

static double modules_s(const struct wlb_layer_cost *cost, struct wlb_plan *plan, int modules)
{
	plan->recompute = (enum wlb_recompute)modules;
	return wlb_layer_modules_s(cost, 4096.0);
}

/* Of 61 layers 3 have no experts; of the others each token has 8 of 2,048 columns and a shared one. */
static void modules_are_computed_again(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	const struct wlb_layer_cost cost = {&deepseek_v3, &machine, &options, &plan};
	machine.operation_s = 0.0;
	double experts = 58.0 / 61, element_s = 4096.0 * 2.0 / machine.memory_bytes_per_s;
	double up_s = wlb_machine_gemm_s(&machine, 4096, 1536, 24576) + wlb_machine_gemm_s(&machine, 4096, 512, 32768);
	double dense_s =
		wlb_machine_gemm_s(&machine, 4096, 7168, 36864) + wlb_machine_gemm_s(&machine, 4096, 18432, 7168);
	double shared_s =
		wlb_machine_gemm_s(&machine, 4096, 7168, 4096) + wlb_machine_gemm_s(&machine, 4096, 2048, 7168);
	double moe_act_s = experts * 8.0 * 2048 * 3.0 * element_s, layernorm_s = 2.0 * 2.0 * 7168 * element_s;
	assert_true(modules_s(&cost, &plan, WLB_RECOMPUTE_NONE) == 0.0);
	assert_near(modules_s(&cost, &plan, WLB_RECOMPUTE_LAYERNORM | WLB_RECOMPUTE_MOE_ACT), layernorm_s + moe_act_s,
	            1e-12);
	assert_near(modules_s(&cost, &plan, WLB_RECOMPUTE_MLP), 3.0 / 61 * (dense_s + 18432 * 3.0 * element_s), 1e-12);
	assert_near(modules_s(&cost, &plan, WLB_RECOMPUTE_SHARED_EXPERTS),
	            experts * (shared_s + 2048 * 3.0 * element_s), 1e-12);
	double rotary_s = 2.0 * (128.0 * 192 + wlb_plan_kv_width(&plan, &deepseek_v3)) * element_s;
	assert_near(modules_s(&cost, &plan, WLB_RECOMPUTE_MLA_UP_PROJ), up_s + rotary_s, 1e-12);
	/* The experts, their rows, what chooses them; and with MLP and ACT all that a layer's MLPs do. */
	double moe_s = modules_s(&cost, &plan, WLB_RECOMPUTE_MOE);
	assert_true(moe_s > modules_s(&cost, &plan, WLB_RECOMPUTE_SHARED_EXPERTS | WLB_RECOMPUTE_MOE_ACT));
	assert_near(modules_s(&cost, &plan, WLB_RECOMPUTE_MOE | WLB_RECOMPUTE_MOE_ACT | WLB_RECOMPUTE_SHARED_EXPERTS),
	            moe_s, 1e-12);
	double kept_s = wlb_layer_attention_s(&cost, 4096, 4096).backward;
	plan.recompute = WLB_RECOMPUTE_CORE_ATTN;
	struct wlb_seconds attention = wlb_layer_attention_s(&cost, 4096, 4096);
	assert_near(attention.backward, kept_s + attention.forward, 1e-12);
	/* What release_activations frees is computed again as the modules. */
	double modules = modules_s(&cost, &plan, WLB_RECOMPUTE_LAYERNORM | WLB_RECOMPUTE_ACT);
	options.release_activations = 1;
	assert_near(modules_s(&cost, &plan, WLB_RECOMPUTE_SELECTIVE), modules, 0.0);
}

static struct wlb_sim_time time_of(const struct wlb_model *model, struct wlb_plan plan, enum wlb_recompute modules)
{
	struct wlb_machine machine = tiled();
	struct wlb_sim_options options;
	int64_t tokens = 4096;
	plan.recompute = modules;
	wlb_sim_options_init(&options, &plan);
	options.cost.tp_overlap = (struct wlb_overlap){0.0, 0.0};
	struct wlb_step step = equal_step(plan.layout.dp, &tokens, 1);
	struct wlb_sim_time time = simulate(model, &machine, &options, &step).time;
	free_step(&step);
	return time;
}

/* Rows go to the experts once more, and ranks gather them; the MLP's input is gathered, and its output scattered; keys
 * and values are gathered for attention. */
static void modules_communicate_again(void **state)
{
	(void)state;
	struct wlb_model dense = llama_7b();
	struct wlb_plan plan = plan_of(2, 1, 1, 8, 1, 1), cut = plan_of(2, 2, 1, 1, 1, 1);
	plan.ep = 8;
	struct wlb_sim_time once = time_of(&mixtral_8x7b, plan, WLB_RECOMPUTE_MOE_ACT),
			    again = time_of(&mixtral_8x7b, plan, WLB_RECOMPUTE_MOE);
	assert_near(again.ep_s, 1.5 * once.ep_s, 1e-9);
	assert_true(again.tp_s > 1.2 * once.tp_s && again.tp_s < 1.6 * once.tp_s);
	once = time_of(&dense, cut, WLB_RECOMPUTE_NONE);
	struct wlb_sim_time mlp = time_of(&dense, cut, WLB_RECOMPUTE_MLP),
			    core = time_of(&dense, cut, WLB_RECOMPUTE_CORE_ATTN);
	/* Of 4 collectives forward and 6 backward, 2 more; of one gather forward and two collectives backward, one. */
	assert_true(mlp.tp_s > 1.15 * once.tp_s && mlp.tp_s < 1.2 * once.tp_s);
	assert_true(core.cp_s > 1.3 * once.cp_s && core.cp_s < 1.4 * once.cp_s);
	assert_near(mlp.cp_s, once.cp_s, 1e-12);
	assert_near(core.tp_s, once.tp_s, 1e-12);
}

static void sets_have_names(void **state)
{
	(void)state;
	char text[WLB_RECOMPUTE_TEXT_BYTES];
	struct wlb_error error = {""};
	struct wlb_model dense = llama_7b();
	struct wlb_cost_options worker = {.trainer = WLB_COST_WORKER};
	enum wlb_recompute got;
	for (int set = 0; set < 1024; set += set < 2 ? 1 : set == 2 ? 2 : 4) {
		wlb_recompute_set_format((enum wlb_recompute)set, text, sizeof(text));
		assert_int_equal(wlb_recompute_set_parse(text, &got, &error), 0);
		assert_int_equal(got, set);
		assert_int_equal(wlb_recompute_set_check(got, &deepseek_v3, NULL, &error), 0);
		assert_int_equal(wlb_recompute_set_check(got, &dense, &worker, &error), set > 2 ? -1 : 0);
	}
	assert_true(strlen(text) > 60); /* all modules */
	assert_int_equal(wlb_recompute_set_parse("moe_act layernorm", &got, &error), 0);
	assert_int_equal(got, WLB_RECOMPUTE_MOE_ACT | WLB_RECOMPUTE_LAYERNORM);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wlb_recompute_set_parse((const char *[]){"", "moe_act,", "moe_acts", "full,moe"}[i],
		                                         &got, &error),
		                 -1);
	for (int set = WLB_RECOMPUTE_CORE_ATTN; set < 2048; set *= 2) {
		int lacks = set == 1024 || set == WLB_RECOMPUTE_MLA_UP_PROJ || set == WLB_RECOMPUTE_MOE ||
		            set == WLB_RECOMPUTE_MOE_ACT || set == WLB_RECOMPUTE_SHARED_EXPERTS;
		assert_int_equal(wlb_recompute_set_check((enum wlb_recompute)set, &dense, NULL, &error),
		                 lacks ? -1 : 0);
	}
}

/* A product with a matrix of zeros and ones, and backward the gradient of its weights. */
static void rows_of_the_embedding_may_be_a_product(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(2, 1, 1, 1, 1, 1);
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	const struct wlb_layer_cost cost = {&model, &machine, &options, &plan};
	struct wlb_seconds rows = wlb_embedding_s(&cost, 4096);
	options.embedding_product = 1;
	struct wlb_seconds product = wlb_embedding_s(&cost, 4096);
	assert_near(product.forward - rows.forward, wlb_machine_gemm_s(&machine, 4096, 16000, 4096), 1e-9);
	assert_near(product.backward - rows.backward, wlb_machine_gemm_s(&machine, 16000, 4096, 4096), 1e-9);
}

/* Asserts that `more` has so many operations more in each direction than `less`, of so many bytes. */
static void assert_more(const struct wlb_machine *machine, struct wlb_seconds more, struct wlb_seconds less,
                        double forward_bytes, double backward_bytes, const double *calls)
{
	double memory = machine->memory_bytes_per_s;
	assert_near(more.forward - less.forward, calls[0] * machine->operation_s + forward_bytes / memory, 1e-9);
	assert_near(more.backward - less.backward, calls[1] * machine->operation_s + backward_bytes / memory, 1e-9);
}

/* GPT in XLA: sums with the biases of 12,288 and 16,384 columns, and sums of their gradients and of two of 4,096; and
 * copies of what the products give, but where whole layers are recomputed. */
static void biases_and_copies_may_be_operations_of_their_own(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options usual, biases, looped;
	wlb_cost_options_init(&usual);
	biases = looped = usual;
	biases.biases_apart = looped.looped_layers = 1;
	model.intermediate_size = 16384;
	model.family = WLB_FAMILY_NEMOTRON;
	const struct wlb_layer_cost a = {&model, &machine, &usual, &plan}, b = {&model, &machine, &biases, &plan},
				    c = {&model, &machine, &looped, &plan};
	struct wlb_seconds less = wlb_layer_elementwise_s(&a, 1024.0);
	double row = 2.0 * 1024.0, both = row * (12288.0 + 16384.0);
	assert_more(&machine, wlb_layer_elementwise_s(&b, 1024.0), less, 2.0 * both, both + row * 8192.0,
	            (const double[]){2.0, 4.0});
	assert_more(&machine, wlb_layer_elementwise_s(&c, 1024.0), less, 2.0 * (both + row * 4096.0), 0.0,
	            (const double[]){3.0, 0.0});
	plan.recompute = WLB_RECOMPUTE_CORE_ATTN | WLB_RECOMPUTE_ACT;
	assert_near(wlb_layer_modules_s(&b, 1024.0) - wlb_layer_modules_s(&a, 1024.0),
	            2.0 * machine.operation_s + 2.0 * both / machine.memory_bytes_per_s, 1e-9);
	plan.recompute = WLB_RECOMPUTE_FULL;
	assert_near(wlb_layer_elementwise_s(&c, 1024.0).forward, less.forward, 0.0);
	assert_true(wlb_layer_elementwise_s(&b, 1024.0).forward > less.forward);
	usual.fp8 = biases.fp8 = WLB_FP8_DELAYED; /* these products add biases */
	assert_near(wlb_layer_elementwise_s(&b, 1024.0).forward, wlb_layer_elementwise_s(&a, 1024.0).forward, 0.0);
	model.family = WLB_FAMILY_LLAMA;
	usual.fp8 = biases.fp8 = WLB_FP8_NONE;
	assert_near(wlb_layer_elementwise_s(&b, 1024.0).forward, wlb_layer_elementwise_s(&a, 1024.0).forward, 0.0);
}

static void count_all(struct wlb_sim_options *options)
{
	options->cost.full_attention = 1;
}

/* Utilization by causal or by full attention: the step is the same. */
static void utilization_has_two_conventions(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_sim_result causal = simulate_7b(&machine, &plan, NULL),
			      full = simulate_7b(&machine, &plan, count_all);
	double n = 4096.0, more = 3.0 * 32 * 4096 * (4.0 * n * n - 2.0 * n * (n + 1.0));
	assert_near(full.flops - causal.flops, more, 1e-9);
	assert_near(full.time.step_s, causal.time.step_s, 1e-12);
	assert_near(full.utilization / causal.utilization, full.flops / causal.flops, 1e-12);
}

/* wlb-worker multiplies keys and values apart from queries where ranks share them, and hides little; float64 takes
 * twice the memory. */
static void a_worker_runs_other_operations(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options megatron, worker;
	machine.element_bytes = 4;
	machine.operation_s = 1.0; /* operations are counted by it */
	machine.peak_flops = 1e18;
	machine.memory_bytes_per_s = 1e15;
	wlb_cost_options_init(&megatron);
	wlb_cost_options_worker(&worker, &machine);
	assert_int_equal(wlb_cost_options_check(&worker, NULL), 0);
	struct wlb_layer_cost a = {&model, &machine, &megatron, &plan}, b = {&model, &machine, &worker, &plan};
	assert_near(wlb_layer_products_s(&a, 64).forward, 4.0, 0.01);
	assert_near(wlb_layer_products_s(&b, 64).forward, 4.0, 0.01);
	assert_near(wlb_layer_products_s(&b, 64).backward, 8.0, 0.01);
	/* Two norms, the gated product, and rotary embeddings: of queries and keys at once. */
	assert_near(wlb_layer_elementwise_s(&a, 64).forward, 7.0, 0.01);
	assert_near(wlb_layer_elementwise_s(&b, 64).forward, 4.0, 0.01);
	struct wlb_plan split = plan_of(4, 1, 1, 1, 1, 1);
	b.plan = &split;
	assert_near(wlb_layer_products_s(&b, 64).forward, 4.0, 0.01);
	assert_near(wlb_layer_elementwise_s(&b, 64).forward, 6.0, 0.01);
	model.num_key_value_heads = 2;
	assert_near(wlb_layer_products_s(&b, 64).forward, 5.0, 0.01);
	assert_near(wlb_layer_products_s(&a, 64).forward, 4.0, 0.01);
	model.num_key_value_heads = model.num_attention_heads;
	struct wlb_memory m = wlb_memory_stage_of(&plan, &model, &machine, &worker, 0, 64, 64);
	double parameters = (double)wlb_model_parameters(&model);
	assert_near(m.weights + m.gradients + m.optimizer, 16.0 * parameters, 1e-12);
	machine.element_bytes = 8;
	wlb_cost_options_worker(&worker, &machine);
	m = wlb_memory_stage_of(&plan, &model, &machine, &worker, 0, 64, 64);
	assert_near(m.weights + m.gradients + m.optimizer, 32.0 * parameters, 1e-12);
	/* bfloat16: weights and the lower halves of masters; gradients and moments in float32; or gradients in
	 * bfloat16. */
	machine.element_bytes = 2;
	wlb_cost_options_worker(&worker, &machine);
	m = wlb_memory_stage_of(&plan, &model, &machine, &worker, 0, 64, 64);
	assert_near(m.weights + m.gradients + m.optimizer, (2.0 + 4.0 + 10.0) * parameters, 1e-12);
	worker.gradient_bytes = 2;
	m = wlb_memory_stage_of(&plan, &model, &machine, &worker, 0, 64, 64);
	assert_near(m.weights + m.gradients + m.optimizer, (2.0 + 2.0 + 10.0) * parameters, 1e-12);
}

/* wlb-worker computes the angles of a token once in a pass, whatever the tensor parallelism, and hides no message on a
 * machine whose processors move them. */
static void a_worker_pays_for_angles_and_for_messages(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_plan whole = plan_of(1, 1, 1, 1, 1, 1), split = plan_of(4, 1, 1, 1, 1, 1);
	struct wlb_cost_options megatron, worker;
	wlb_cost_options_init(&megatron);
	wlb_cost_options_worker(&worker, &machine);
	assert_true(worker.overlap_gradients && worker.overlap_parameters && worker.overlap_pp);
	assert_true(worker.tp_overlap.forward == 0.0 && worker.tp_overlap.backward == 4.0 / 6.0);
	assert_true(worker.cp_overlap.forward == 1.0 && worker.cp_overlap.backward == 1.0);
	const struct wlb_layer_cost costs[] = {{&model, &machine, &worker, &whole},
	                                       {&model, &machine, &worker, &split},
	                                       {&model, &machine, &megatron, &whole}};
	machine.operations[WLB_OP_ROPE_ANGLES].element_s = 1e-3;
	double angles_s = 64.0 * 0.5 * (double)model.head_dim * 1e-3;
	for (int i = 0; i < 2; i++)
		assert_near(wlb_angles_s(&costs[i], 64), angles_s, 1e-12);
	assert_true(wlb_angles_s(&costs[2], 64) == 0.0);
	machine.blocking_messages = 1;
	wlb_cost_options_worker(&worker, &machine);
	assert_true(!worker.overlap_gradients && !worker.overlap_parameters && !worker.overlap_pp);
	assert_true(worker.tp_overlap.backward == 0.0 && worker.cp_overlap.backward == 0.0);
}

/* Of rows in halves: where products take longer than messages, none is exposed, but of layers that are computed again a
 * gather of the MLP, and one of what each pass begins with. Where keys are exchanged, the second gather of attention's
 * input is, and where attention takes no time, the sum of its first half. Where products take no time, every message
 * is. */
static void halves_hide_what_products_can(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(8, 1, 1, 1, 1, 1), alone = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options worker;
	const struct wlb_layer_cost cost = {&model, &machine, &worker, &plan},
				    whole = {&model, &machine, &worker, &alone};
	wlb_cost_options_worker(&worker, &machine);
	assert_false(wlb_layer_halves_rows(&cost, 4096.0));
	struct wlb_seconds piece = wlb_layer_products_s(&cost, 4096.0);
	worker.halved_rows = 4096;
	assert_true(wlb_layer_halves_rows(&cost, 4096.0) && !wlb_layer_halves_rows(&cost, 4095.0));
	assert_false(wlb_layer_halves_rows(&whole, 4096.0));
	assert_true(wlb_layer_products_s(&cost, 4096.0).forward > piece.forward);
	const double gather_s = 3e-9, reduce_s = 5e-9;
	const struct wlb_seconds none = {0}, some = {1e-6, 1e-6};
	struct wlb_halved_rows found = wlb_layer_halved_rows(&cost, 4096.0, gather_s, reduce_s, none);
	assert_true(fabs(found.exposed.forward) < 1e-15 && fabs(found.exposed.backward) < 1e-15);
	assert_near(found.again_s, 3.0 * gather_s, 1e-6);
	plan.layout.cp = 2;
	found = wlb_layer_halved_rows(&cost, 4096.0, gather_s, reduce_s, none);
	assert_near(found.exposed.forward, gather_s + reduce_s, 1e-6);
	found = wlb_layer_halved_rows(&cost, 4096.0, gather_s, reduce_s, some);
	assert_near(found.exposed.forward, gather_s, 1e-6);
	plan.layout.cp = 1;
	found = wlb_layer_halved_rows(&cost, 4096.0, 1e6, 1e6, none);
	assert_near(found.exposed.forward, 8e6, 1e-6);
	assert_near(found.exposed.backward, 12e6, 1e-6);
	assert_near(found.again_s, 6e6, 1e-6);
}

static void run_the_worker_in_halves(struct wlb_sim_options *options)
{
	run_the_worker_over_nccl(options);
	options->cost.halved_rows = 4096;
}

/* On 8 GPUs of a node a step of 70B has less than a third of the exposed tensor-parallel time, or than 0.4 of it where
 * layers are computed again; over messages that block, no less than without. */
static void halves_shorten_a_step(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(8, 1, 1, 1, 1, 4);
	for (int recompute = WLB_RECOMPUTE_NONE; recompute <= WLB_RECOMPUTE_FULL; recompute++) {
		plan.recompute = (enum wlb_recompute)recompute;
		struct wlb_sim_result one = simulate_model(llama_70b(), &machine, &plan, run_the_worker_over_nccl);
		struct wlb_sim_result halves = simulate_model(llama_70b(), &machine, &plan, run_the_worker_in_halves);
		assert_true(halves.time.tp_s < (recompute == WLB_RECOMPUTE_FULL ? 0.4 : 1.0 / 3.0) * one.time.tp_s);
		assert_true(halves.time.step_s < one.time.step_s);
	}
	machine.blocking_messages = 1;
	struct wlb_sim_result one = simulate_7b(&machine, &plan, run_the_worker);
	struct wlb_sim_result halves = simulate_7b(&machine, &plan, run_the_worker_in_halves);
	assert_true(halves.time.tp_s >= one.time.tp_s);
}

/* A machine with the time of every operation: a number of elements of its own for each, so that sums tell them apart.
 */
static struct wlb_machine with_operations(void)
{
	struct wlb_machine machine = tiled();
	machine.element_bytes = 4;
	for (int op = 0; op < WLB_OPERATIONS; op++)
		machine.operations[op] =
			(struct wlb_op_time){.call_s = 1e-6 * (op + 1), .element_s = 1e-12 * (1 << op)};
	return machine;
}

static double op_s(const struct wlb_machine *machine, enum wlb_op op, double elements)
{
	return machine->operations[op].call_s + elements * machine->operations[op].element_s;
}

/* wlb-worker updates and gathers the weights of a bucket, embedding or layer, beside the next forward pass, in its
 * order. Fast updates leave the gathers of the first two to wait for, and the reductions of the last two; slow ones
 * are waited for whole. Without replicas nothing is gathered. */
static void a_worker_updates_beside_the_next_step(void **state)
{
	(void)state;
	struct wlb_machine machine = with_operations();
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(1, 1, 1, 8, 1, 1), alone = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options worker;
	wlb_cost_options_worker(&worker, &machine);
	const struct wlb_layer_cost cost = {&model, &machine, &worker, &plan};
	struct wlb_seconds embedding = wlb_embedding_s(&cost, 4096.0);
	double table = 4.0 * (double)(model.vocab_size * model.hidden_size);
	double layer = 4.0 * (double)wlb_model_layer_matrix_parameters(&model);
	machine.operations[WLB_OP_ADAMW].element_s = 1e-18;
	struct wlb_sim_result fast = simulate_7b(&machine, &plan, run_the_worker_over_nccl);
	double none_s = wlb_machine_gather_s(&machine, 8, 8, 0, 0.0) + wlb_machine_reduce_s(&machine, 8, 8, 0, 0.0);
	assert_near(fast.time.dp_s,
	            wlb_machine_gather_s(&machine, 8, 8, 0, table) + wlb_machine_gather_s(&machine, 8, 8, 0, layer) +
	                    wlb_machine_reduce_s(&machine, 8, 8, 0, table) +
	                    wlb_machine_reduce_s(&machine, 8, 8, 0, layer) + none_s - embedding.forward -
	                    embedding.backward,
	            1e-3);
	struct wlb_sim_result slow[2], single[2];
	for (int i = 0; i < 2; i++) {
		machine.operations[WLB_OP_ADAMW].element_s = (i + 1) * 1e-7;
		slow[i] = simulate_7b(&machine, &plan, run_the_worker_over_nccl);
		single[i] = simulate_7b(&machine, &alone, run_the_worker_over_nccl);
	}
	double parameters = (double)wlb_model_parameters(&model);
	assert_near(slow[1].time.dp_s - slow[0].time.dp_s, 1e-7 * parameters / 8.0, 1e-3);
	assert_true(slow[1].time.optimizer_s == fast.time.optimizer_s);
	assert_near(single[1].time.optimizer_s - single[0].time.optimizer_s, 1e-7 * parameters, 1e-3);
	assert_true(single[1].time.dp_s == 0.0);
}

/* The defect: on a processor, operations with exponentials and roots took far longer than their memory traffic. */
static void a_measured_operation_takes_its_own_time(void **state)
{
	(void)state;
	struct wlb_machine machine = with_operations(), plain = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(2, 1, 1, 1, 1, 1);
	struct wlb_cost_options worker, megatron;
	wlb_cost_options_init(&megatron);
	wlb_cost_options_worker(&worker, &machine);
	const struct wlb_layer_cost cost = {&model, &machine, &worker, &plan};
	double hidden = 64.0 * 4096.0 / 2.0, queries_keys = 2.0 * 64.0 * 4096.0 / 2.0, mlp = 64.0 * 11008.0 / 2.0;
	double rotary_s = op_s(&machine, WLB_OP_ROPE, queries_keys);
	struct wlb_seconds layer = wlb_layer_elementwise_s(&cost, 64.0);
	assert_near(layer.forward,
	            2.0 * op_s(&machine, WLB_OP_RMSNORM_FORWARD, hidden) + rotary_s +
	                    op_s(&machine, WLB_OP_SWIGLU_FORWARD, mlp) + 2.0 * op_s(&machine, WLB_OP_ADD, hidden),
	            1e-12);
	assert_near(layer.backward,
	            2.0 * op_s(&machine, WLB_OP_RMSNORM_BACKWARD, hidden) + rotary_s +
	                    op_s(&machine, WLB_OP_SWIGLU_BACKWARD, mlp),
	            1e-12);
	assert_near(wlb_angles_s(&cost, 64.0), op_s(&machine, WLB_OP_ROPE_ANGLES, 64.0 * 0.5 * (double)model.head_dim),
	            1e-12);
	assert_near(
		wlb_optimizer_s(&cost, 1e6, 2e6),
		1e6 * (machine.operations[WLB_OP_ADAMW].element_s + machine.operations[WLB_OP_SUM_SQUARES].element_s),
		1e-12);
	/* Other trainers have other operations. */
	const struct wlb_layer_cost other = {&model, &machine, &megatron, &plan},
				    same = {&model, &plain, &megatron, &plan};
	plain.element_bytes = 4;
	assert_near(wlb_layer_elementwise_s(&other, 64.0).forward, wlb_layer_elementwise_s(&same, 64.0).forward, 1e-12);
	assert_near(wlb_head_s(&other, 64.0).backward, wlb_head_s(&same, 64.0).backward, 1e-12);
}

/* Gemma's norms after attention and MLP, each with a sum that tensor parallelism has anyhow, the cap of its logits, and
 * angles of two kinds. */
static void gemma_has_further_operations(void **state)
{
	(void)state;
	struct wlb_machine machine = with_operations();
	struct wlb_model llama = llama_7b(), gemma = llama;
	struct wlb_cost_options worker;
	wlb_cost_options_worker(&worker, &machine);
	gemma.family = WLB_FAMILY_GEMMA2;
	gemma.final_logit_softcapping = 30.0;
	for (int tp = 1; tp <= 2; tp++) {
		struct wlb_plan plan = plan_of(tp, 1, 1, 1, 1, 1);
		const struct wlb_layer_cost a = {&llama, &machine, &worker, &plan},
					    b = {&gemma, &machine, &worker, &plan};
		double hidden = 64.0 * 4096.0 / tp, logits = 64.0 * 32000.0 / tp;
		struct wlb_seconds less = wlb_layer_elementwise_s(&a, 64.0), more = wlb_layer_elementwise_s(&b, 64.0);
		assert_near(more.forward - less.forward,
		            2.0 * op_s(&machine, WLB_OP_RMSNORM_FORWARD, hidden) +
		                    (tp == 1 ? 2.0 * op_s(&machine, WLB_OP_ADD, hidden) : 0.0),
		            1e-9);
		assert_near(more.backward - less.backward, 2.0 * op_s(&machine, WLB_OP_RMSNORM_BACKWARD, hidden), 1e-9);
		assert_near(wlb_head_s(&b, 64.0).forward - wlb_head_s(&a, 64.0).forward,
		            op_s(&machine, WLB_OP_ADD, logits), 1e-9);
		assert_near(wlb_angles_s(&b, 64.0), wlb_angles_s(&a, 64.0), 1e-12);
	}
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	const struct wlb_layer_cost a = {&llama, &machine, &worker, &plan}, b = {&gemma, &machine, &worker, &plan};
	gemma.family = WLB_FAMILY_GEMMA3;
	gemma.rope_local_base_freq = 1e4;
	assert_near(wlb_angles_s(&b, 64.0), 2.0 * wlb_angles_s(&a, 64.0), 1e-12);
}

/* One of them that a file lacks takes the time of its memory traffic. */
static void an_operation_that_was_not_measured_takes_its_traffic(void **state)
{
	(void)state;
	struct wlb_machine machine = with_operations();
	machine.operation_s = 3e-6;
	machine.operations[WLB_OP_ADAMW].element_s = 0.0;
	assert_near(wlb_machine_op_s(&machine, WLB_OP_ADAMW, 1e6), 3e-6 + 7.0 * 4.0 * 1e6 / machine.memory_bytes_per_s,
	            1e-12);
	assert_near(wlb_machine_op_s(&machine, WLB_OP_COPY, 1e6), op_s(&machine, WLB_OP_COPY, 1e6), 1e-12);
	machine.operations[WLB_OP_ROPE_ANGLES].element_s = 0.0;
	assert_true(wlb_machine_op_s(&machine, WLB_OP_ROPE_ANGLES, 1e6) == 0.0);
}

static void what_is_no_operation_has_no_traffic(void **state)
{
	(void)state;
	static const int none[] = {WLB_OPERATIONS, -1, 1 << 30};
	for (int i = 0; i < 3; i++) {
		assert_string_equal(wlb_op_name((enum wlb_op)none[i]), "unknown");
		assert_true(wlb_op_traffic((enum wlb_op)none[i]) == 0.0);
	}
}

static void assert_sum(const struct wlb_machine *machine, const struct wlb_plan *plan)
{
	struct wlb_sim_time t = simulate_7b(machine, plan, run_the_worker).time;
	assert_near(t.compute_s + t.recompute_s + t.cp_imbalance_s + t.tp_s + t.cp_s + t.ep_s + t.bubble_s + t.pp_s +
	                    t.imbalance_s + t.dp_s + t.straggler_s + t.optimizer_s,
	            t.step_s, 1e-12);
}

/* With measured operations too, parts sum to the step, and the bound of the search is none of a faster layer. */
static void measured_operations_keep_the_sums_and_the_bounds(void **state)
{
	(void)state;
	struct wlb_machine machine = with_operations();
	struct wlb_model model = llama_7b();
	const struct wlb_plan plans[] = {plan_of(1, 1, 1, 2, 1, 2), plan_of(2, 1, 2, 1, 1, 4),
	                                 plan_of(1, 2, 1, 1, 1, 2)};
	struct wlb_cost_options worker;
	wlb_cost_options_worker(&worker, &machine);
	for (int i = 0; i < 3; i++) {
		const struct wlb_layer_cost cost = {&model, &machine, &worker, &plans[i]};
		struct wlb_seconds least = wlb_layer_least_s(&cost, 512.0), all = wlb_layer_elementwise_s(&cost, 512.0),
				   products = wlb_layer_products_s(&cost, 512.0), head = wlb_head_s(&cost, 512.0);
		assert_sum(&machine, &plans[i]);
		assert_true(least.forward <= all.forward + products.forward);
		assert_true(least.backward <= all.backward + products.backward);
		assert_true(wlb_head_least_s(&cost, 512.0).forward <= head.forward);
		assert_true(wlb_head_least_s(&cost, 512.0).backward <= head.backward);
	}
}

/* Each of 8 experts multiplies a quarter of the tokens, which two experts compute; the choice of experts is made on the
 * rows of one tensor-parallel rank. */
static void experts_share_the_tokens(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(2, 1, 1, 1, 1, 1);
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	const struct wlb_layer_cost cost = {&mixtral_8x7b, &machine, &options, &plan};
	double attention_s =
		wlb_machine_gemm_s(&machine, 4096, 4096, 3072) + wlb_machine_gemm_s(&machine, 4096, 2048, 4096);
	double router_s = wlb_machine_gemm_s(&machine, 2048, 4096, 8);
	double expert_s =
		wlb_machine_gemm_s(&machine, 1024, 4096, 14336) + wlb_machine_gemm_s(&machine, 1024, 7168, 4096);
	struct wlb_seconds products = wlb_layer_products_s(&cost, 4096), least = wlb_layer_least_s(&cost, 4096);
	assert_near(products.forward, attention_s + router_s + 8.0 * expert_s, 1e-12);
	struct wlb_seconds others = wlb_layer_elementwise_s(&cost, 4096);
	assert_true(least.forward <= products.forward + others.forward);
	assert_true(least.backward <= products.backward + others.backward);
	/* Two rows for each token are ordered by experts and back: 4 x 2 x 4,096 elements. The gated product has both.
	 */
	struct wlb_model dense = mixtral_8x7b;
	dense.family = WLB_FAMILY_MISTRAL;
	dense.num_experts = dense.num_experts_per_tok = 0;
	const struct wlb_layer_cost of_dense = {&dense, &machine, &options, &plan};
	double bytes = 4096.0 * 2.0 * (4.0 * 2.0 * 4096.0 + 3.0 * 7168.0);
	double more_s = others.forward - wlb_layer_elementwise_s(&of_dense, 4096).forward;
	assert_near(more_s, bytes / machine.memory_bytes_per_s + 2.0 * machine.operation_s, 1e-9);
	/* The backward pass reads what the last product of experts gives, and that before a norm. */
	assert_true(wlb_layer_last_s(&of_dense, 4096) > wlb_layer_last_least_s(&of_dense, 4096));
	assert_true(wlb_layer_last_least_s(&of_dense, 4096) > 0.0 && wlb_layer_last_s(&cost, 4096) == 0.0);
	dense.family = WLB_FAMILY_OLMO2;
	assert_true(wlb_layer_last_s(&of_dense, 4096) == 0.0 && wlb_layer_last_least_s(&of_dense, 4096) == 0.0);
	/* Four ranks have two experts each, of which each gets as many rows as the rank has tokens. A half of the
	 * copies is put in order before it is sent, and all that arrive again. */
	plan.layout.dp = plan.ep = 4;
	expert_s = wlb_machine_gemm_s(&machine, 4096, 4096, 14336) + wlb_machine_gemm_s(&machine, 4096, 7168, 4096);
	assert_near(wlb_layer_products_s(&cost, 4096).forward, attention_s + router_s + 2.0 * expert_s, 1e-12);
	more_s = wlb_layer_elementwise_s(&cost, 4096).forward - others.forward;
	assert_near(more_s, 4096.0 * 2.0 * 2.0 * 2.0 * 4096.0 / machine.memory_bytes_per_s + 2.0 * machine.operation_s,
	            1e-9);
}

/* Of 8 experts on 8 ranks of 4 nodes a row has two, which are on the same node in 1 of 7 cases: they are on 13 / 7
 * nodes, of which 3 of 4 are others. A rank has a half of the rows of 2 copies for the other rank of its node. */
static void rows_are_sent_once_to_a_node(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(2, 1, 1, 8, 1, 1);
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	machine.gpus_per_node = 4;
	plan.ep = 8;
	const struct wlb_layer_cost cost = {&mixtral_8x7b, &machine, &options, &plan};
	double row_bytes = 2048.0 * 4096 * 2, far = 2.0 * 6 / 8 * row_bytes, near = 2.0 / 8 * row_bytes;
	assert_near(wlb_layer_exchange_s(&cost, 4096, 0), 2.0 * wlb_machine_exchange_s(&machine, 8, 2, 0, near, far),
	            1e-12);
	machine.link_nodes = 4; /* whose links connect all of them */
	assert_near(wlb_layer_exchange_s(&cost, 4096, 0),
	            2.0 * wlb_machine_exchange_s(&machine, 8, 8, 0, 2.0 * 7 / 8 * row_bytes, 0.0), 1e-12);
	machine.link_nodes = 0;
	options.rows_by_node = 1;
	assert_near(wlb_layer_exchange_s(&cost, 4096, 0),
	            2.0 * wlb_machine_exchange_s(&machine, 8, 2, 0, row_bytes, 39.0 / 28 * row_bytes), 1e-12);
	machine.node_link.bytes_per_s = 1e9; /* now the copies on the node take longest */
	assert_near(wlb_layer_exchange_s(&cost, 4096, 0), 2.0 * wlb_machine_node_send_s(&machine, row_bytes), 1e-12);
}

/* Each of 8 ranks has one of 8 experts, and a row has two: the other ranks of a node have 2 x 7 / 8 of its copies. Over
 * the network it goes as with rows_by_node. Of 2 ranks with 4 experts each a row has both on one in 3 of 7 cases. */
static void rows_are_sent_once_to_a_rank(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 1, 1, 8, 1, 1);
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	options.rows_by_rank = 1;
	plan.ep = 8;
	const struct wlb_layer_cost cost = {&mixtral_8x7b, &machine, &options, &plan};
	double row_bytes = 4096.0 * 4096 * 2;
	assert_near(wlb_layer_exchange_s(&cost, 4096, 0),
	            2.0 * wlb_machine_exchange_s(&machine, 8, 8, 0, 14.0 / 8 * row_bytes, 0.0), 1e-12);
	machine.gpus_per_node = 2;
	assert_near(wlb_layer_exchange_s(&cost, 4096, 0),
	            2.0 * wlb_machine_exchange_s(&machine, 8, 2, 0, row_bytes, 39.0 / 28 * row_bytes), 1e-12);
	options.exchange_rate = 0.5; /* of the network's */
	assert_near(wlb_layer_exchange_s(&cost, 4096, 0),
	            2.0 * wlb_machine_exchange_s(&machine, 8, 2, 0, row_bytes, 39.0 / 14 * row_bytes), 1e-12);
	plan.ep = 2;
	assert_near(wlb_layer_exchange_s(&cost, 4096, 0),
	            2.0 * wlb_machine_exchange_s(&machine, 2, 2, 0, 11.0 / 14 * row_bytes, 0.0), 1e-12);
	/* No copies are put in order before they are sent; those that arrive are. */
	double elements = 4.0 * 4096.0 * 2.0 * 4096.0, once_s = wlb_layer_elementwise_s(&cost, 4096).forward;
	options.rows_by_rank = 0;
	assert_near(wlb_layer_elementwise_s(&cost, 4096).forward - once_s,
	            2.0 * elements / machine.memory_bytes_per_s + 2.0 * machine.operation_s, 1e-9);
}

/* With a row's 2 experts neighbours, and each row's the next after those of the row before, one of 4 ranks with 2 of 8
 * experts has both. With 3 of them, a row has those of 1 + (3 - 1) / 2 ranks, and on nodes of 2 ranks, 4 experts, those
 * of 1 + (3 - 1) / 4 nodes; with all 8, those of all. */
static void a_gate_in_turn_gives_a_row_neighbours(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 1, 1, 8, 1, 1);
	struct wlb_model model = mixtral_8x7b;
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	options.rows_by_rank = options.experts_in_turn = 1;
	plan.ep = 4;
	const struct wlb_layer_cost cost = {&model, &machine, &options, &plan};
	double row_bytes = 4096.0 * 4096 * 2;
	assert_near(wlb_layer_exchange_s(&cost, 4096, 0),
	            2.0 * wlb_machine_exchange_s(&machine, 4, 8, 0, 3.0 / 4 * row_bytes, 0.0), 1e-12);
	model.num_experts_per_tok = 3;
	machine.gpus_per_node = 2;
	assert_near(wlb_layer_exchange_s(&cost, 4096, 0),
	            2.0 * wlb_machine_exchange_s(&machine, 4, 2, 0, row_bytes, 1.5 / 2 * row_bytes), 1e-12);
	model.num_experts_per_tok = 8;
	assert_near(wlb_layer_exchange_s(&cost, 4096, 0),
	            2.0 * wlb_machine_exchange_s(&machine, 4, 2, 0, 2.0 * row_bytes, row_bytes), 1e-12);
}

/* Of 8 experts each has the rows of 5 tiles, in products of 16 columns of tiles: alone a wave of 132 processors each,
 * together 5 waves. */
static void experts_of_one_kernel_share_its_waves(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	const struct wlb_layer_cost cost = {&mixtral_8x7b, &machine, &options, &plan};
	double one_s = wlb_machine_gemm_s(&machine, 640, 8192, 4096) - machine.operation_s;
	double eight_s = wlb_machine_grouped_gemm_s(&machine, WLB_FP8_NONE, 8.0, 640, 8192, 4096);
	assert_near(eight_s, 5.0 * one_s + machine.operation_s, 1e-12);
	double apart_s =
		8.0 * (wlb_machine_gemm_s(&machine, 640, 4096, 28672) + wlb_machine_gemm_s(&machine, 640, 14336, 4096));
	double grouped_s = wlb_machine_grouped_gemm_s(&machine, WLB_FP8_NONE, 8.0, 640, 4096, 28672) +
	                   wlb_machine_grouped_gemm_s(&machine, WLB_FP8_NONE, 8.0, 640, 14336, 4096);
	struct wlb_seconds apart = wlb_layer_products_s(&cost, 2560);
	options.grouped_experts = 1;
	struct wlb_seconds grouped = wlb_layer_products_s(&cost, 2560), least = wlb_layer_least_s(&cost, 2560);
	assert_near(apart.forward - grouped.forward, apart_s - grouped_s, 1e-9);
	assert_true(grouped_s < apart_s && grouped.backward < apart.backward && least.forward < grouped.forward);
	/* Measured rates are those of a product. */
	machine.gemm = (struct wlb_gemm_rates){.rows = {1}, .depth = {1}, .columns = {1}, .flops_per_s = {1e12}};
	machine.gemm.rows_count = machine.gemm.depth_count = machine.gemm.columns_count = 1;
	assert_near(wlb_machine_grouped_gemm_s(&machine, WLB_FP8_NONE, 8.0, 1000, 1000, 1000), 16e9 / 1e12, 1e-12);
}

/* The gated product of experts, and the casts of its result and of the gradients of both of its factors. */
static void experts_kernels_gate_and_cast(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	const struct wlb_layer_cost cost = {&deepseek_v3, &machine, &options, &plan};
	for (int fp8 = WLB_FP8_NONE; fp8 <= WLB_FP8_MXFP8; fp8++) {
		double bytes = fp8 == WLB_FP8_MXFP8 ? 4096.0 * 58 / 61 * 8 * 2048 * 2.0 : 0.0;
		options.fp8 = (enum wlb_fp8)fp8;
		options.fused_experts = 0;
		struct wlb_seconds apart = wlb_layer_elementwise_s(&cost, 4096);
		options.fused_experts = 1;
		struct wlb_seconds fused = wlb_layer_elementwise_s(&cost, 4096);
		assert_true(fabs(apart.forward - fused.forward - bytes * 5.0 / machine.memory_bytes_per_s) < 1e-12);
		assert_true(fabs(apart.backward - fused.backward - bytes * 9.0 / machine.memory_bytes_per_s) < 1e-12);
	}
}

/* Where every fourth layer rotates nothing, and where none does, less of queries and keys is read and written, in both
 * directions, by one kernel for each of the two. */
static void layers_without_rotary_embeddings_do_not_rotate(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	const struct wlb_layer_cost cost = {&model, &machine, &options, &plan};
	struct wlb_seconds all = wlb_layer_elementwise_s(&cost, 4096);
	double rotary_s = 2.0 * machine.operation_s + 2.0 * 2.0 * 2.0 * 4096 * 4096 / machine.memory_bytes_per_s;
	for (int interval = 4; interval >= 1; interval -= 3) {
		model.no_rope_layer_interval = interval;
		struct wlb_seconds some = wlb_layer_elementwise_s(&cost, 4096);
		assert_near(all.forward - some.forward, rotary_s / interval, 1e-9);
		assert_near(all.backward - some.backward, rotary_s / interval, 1e-9);
	}
}

static struct wlb_sim_time time_of_experts(struct wlb_plan plan, int32_t exchange_processors)
{
	struct wlb_machine machine = tiled();
	struct wlb_sim_options options;
	int64_t tokens = 4096;
	wlb_sim_options_init(&options, &plan);
	options.cost.exchange_processors = exchange_processors;
	struct wlb_step step = equal_step(plan.micro_batches * plan.layout.dp, &tokens, 1);
	struct wlb_sim_time time = simulate(&mixtral_8x7b, &machine, &options, &step).time;
	free_step(&step);
	return time;
}

/* Of 4 micro-batches one forward and one backward pass have none beside them; beside 33 of 132 processors a quarter of
 * the computation is lost. Stages without chunks, and layers that are computed again, hide nothing. */
static void rows_with_experts_travel_beside_another_micro_batch(void **state)
{
	(void)state;
	struct wlb_plan plan = plan_of(1, 1, 1, 8, 1, 4);
	plan.ep = 8;
	double alone_s = time_of_experts(plan, 0).ep_s;
	assert_near(time_of_experts(plan, 33).ep_s, (1.0 / 4 + 3.0 / 4 / 4) * alone_s, 1e-9);
	assert_near(time_of_experts(plan, 132).ep_s, alone_s, 1e-9);
	plan.recompute = WLB_RECOMPUTE_FULL;
	assert_near(time_of_experts(plan, 33).ep_s, time_of_experts(plan, 0).ep_s, 0.0);
	plan.recompute = WLB_RECOMPUTE_NONE;
	plan.layout.pp = 2;
	assert_near(time_of_experts(plan, 33).ep_s, time_of_experts(plan, 0).ep_s, 0.0);
	plan.interleave = 2; /* 8 passes, of which the first stage has 5 in flight */
	double share = 5.0 / 8;
	assert_near(time_of_experts(plan, 33).ep_s, (share + (1.0 - share) / 4) * time_of_experts(plan, 0).ep_s, 1e-9);
}

/* Queries are made of 1,536 elements of a row, keys and values of 512 and 64; 3 of 61 layers have no experts. */
static void latent_attention_and_dense_layers_have_their_products(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	const struct wlb_layer_cost cost = {&deepseek_v3, &machine, &options, &plan};
	const double shapes[][3] = {{1.0, 7168, 1536},       {1.0, 1536, 24576},      {1.0, 7168, 576},
	                            {1.0, 512, 32768},       {1.0, 16384, 7168}, /* attention */
	                            {58.0 / 61, 7168, 256},  {58.0 / 61, 7168, 4096}, {58.0 / 61, 2048, 7168},
	                            {3.0 / 61, 7168, 36864}, {3.0 / 61, 18432, 7168}};
	double seconds =
		256.0 * 58 / 61 *
		(wlb_machine_gemm_s(&machine, 128, 7168, 4096) + wlb_machine_gemm_s(&machine, 128, 2048, 7168));
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		seconds += shapes[i][0] * wlb_machine_gemm_s(&machine, 4096, shapes[i][1], shapes[i][2]);
	struct wlb_seconds products = wlb_layer_products_s(&cost, 4096), least = wlb_layer_least_s(&cost, 4096);
	assert_near(products.forward, seconds, 1e-12);
	assert_true(least.forward <= products.forward + wlb_layer_elementwise_s(&cost, 4096).forward);
	/* Scores of 192 elements, values of 128. */
	assert_near(wlb_layer_attention_s(&cost, 4096, 4096).forward,
	            wlb_machine_attention_s(&machine, 128, 160, 0.0, 4096, 4096, 0), 1e-12);
	/* The last product of the 3 layers, whose result the backward pass does not read, and the sum after it. */
	double sum_s = 3.0 * 2.0 * 4096.0 * 7168.0 / machine.memory_bytes_per_s + machine.operation_s;
	assert_near(wlb_layer_last_s(&cost, 4096), 3.0 / 61 * (wlb_machine_gemm_s(&machine, 4096, 18432, 7168) + sum_s),
	            1e-12);
	/* Casts of the inputs of products; of MLPs those of 9 experts of 2,048 columns, or of one MLP of 18,432. */
	double others_s = wlb_layer_elementwise_s(&cost, 4096).forward;
	double mlps = 58.0 / 61 * 9 * (7168 + 2048) + 3.0 / 61 * (7168 + 18432);
	options.fp8 = WLB_FP8_DELAYED;
	assert_near(wlb_layer_elementwise_s(&cost, 4096).forward - others_s,
	            2.0 * 2.0 * 4096.0 * (7168 + 16384 + mlps) / machine.memory_bytes_per_s + 4.0 * machine.operation_s,
	            1e-9);
}

/* As operations of PyTorch: rotary embeddings of 32 and 8 heads of 128, 28,672 columns of gate and up of each of a
 * token's 2 experts, what these give, and attention with sinks. Of latent attention 128 heads have 64 elements rotated,
 * and 192 of a query and of a key together, 128 of a value. */
static void operations_of_pytorch_have_their_own_traffic(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	const double rotary = 4096 + 1024, gates = 2 * 2 * 14336, routed = 2 * 4096, sinks = 4096,
		     keys_or_values = 1024;
	const double rotated = 8192, queries = 24576, keys = 20480, values = 16384, keys_values = 32768;
	const struct {
		enum wlb_family family;
		const struct wlb_model *model;
		double forward, backward, forward_calls, backward_calls;
	} cases[] = {
		{WLB_FAMILY_MIXTRAL, &mixtral_8x7b, 7 * rotary, 8 * rotary, -1, -1},
		{WLB_FAMILY_GPT_OSS, &mixtral_8x7b,
	         7 * rotary + 4 * gates + 14 * routed + 10 * sinks + 4 * keys_or_values,
	         8 * rotary + 3 * gates + 20 * routed + 17 * sinks + 2 * keys_or_values, 4, 4},
		{WLB_FAMILY_DEEPSEEK_V3, &deepseek_v3, 10 * rotated + 2 * queries + 2 * values - 2 * keys,
	         11 * rotated + 2 * keys_values - 2 * keys, 1, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_model model = *cases[i].model;
		struct wlb_cost_options options;
		double row_s = 4096.0 * 2.0 / machine.memory_bytes_per_s, call_s = machine.operation_s;
		double logit_s = 4096.0 * (double)model.vocab_size / machine.memory_bytes_per_s;
		model.family = cases[i].family;
		wlb_cost_options_init(&options);
		const struct wlb_layer_cost cost = {&model, &machine, &options, &plan};
		struct wlb_seconds one = wlb_layer_elementwise_s(&cost, 4096), one_head = wlb_head_s(&cost, 4096);
		options.split_operations = 1;
		struct wlb_seconds split = wlb_layer_elementwise_s(&cost, 4096), head = wlb_head_s(&cost, 4096);
		assert_near(split.forward - one.forward, row_s * cases[i].forward + call_s * cases[i].forward_calls,
		            1e-9);
		assert_near(split.backward - one.backward, row_s * cases[i].backward + call_s * cases[i].backward_calls,
		            1e-9);
		assert_near(one_head.forward - head.forward, (38.0 - 8.0) * logit_s, 1e-9);
		assert_near(one_head.backward - head.backward, (14.0 - 10.0) * logit_s, 1e-9);
	}
}

/* Of 3 matrices 2 are left, and of the activation's 3 and 5 elements 2 and 3. */
static void an_mlp_without_a_gate_has_two_products(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_plan plan = plan_of(1, 1, 1, 1, 1, 1);
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	struct wlb_model gated = llama_7b(), model = llama_7b();
	model.family = WLB_FAMILY_NEMOTRON;
	const struct wlb_layer_cost cost = {&model, &machine, &options, &plan};
	const struct wlb_layer_cost of_gated = {&gated, &machine, &options, &plan};
	double attention_s =
		wlb_machine_gemm_s(&machine, 4096, 4096, 12288) + wlb_machine_gemm_s(&machine, 4096, 4096, 4096);
	double mlp_s =
		wlb_machine_gemm_s(&machine, 4096, 4096, 11008) + wlb_machine_gemm_s(&machine, 4096, 11008, 4096);
	struct wlb_seconds products = wlb_layer_products_s(&cost, 4096), least = wlb_layer_least_s(&cost, 4096);
	assert_near(products.forward, attention_s + mlp_s, 1e-12);
	struct wlb_seconds others = wlb_layer_elementwise_s(&cost, 4096),
			   more = wlb_layer_elementwise_s(&of_gated, 4096);
	double pass_s = 4096.0 * 2.0 * 11008.0 / machine.memory_bytes_per_s;
	assert_near(more.forward - others.forward, pass_s, 1e-9);
	assert_near(more.backward - others.backward, 2.0 * pass_s, 1e-9);
	assert_true(least.forward <= products.forward + others.forward);
}

/* Attention that is not fused computes all pairs and moves their scores: 9 bytes forward and 11 backward. */
static void unfused_attention_moves_its_scores(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_plan plan = plan_of(4, 1, 1, 1, 1, 8);
	struct wlb_cost_options fused, unfused;
	wlb_cost_options_init(&fused);
	unfused = fused;
	unfused.unfused_attention = 1;
	plan.recompute = WLB_RECOMPUTE_NONE;
	const struct wlb_layer_cost of_fused = {&model, &machine, &fused, &plan},
				    cost = {&model, &machine, &unfused, &plan};
	double n = 2048.0, heads = 8.0, scores_s = heads * n * n / machine.memory_bytes_per_s;
	double qk_s = wlb_machine_gemm_s(&machine, heads * n, 128, n);
	double pv_s = wlb_machine_gemm_s(&machine, heads * n, n, 128);
	struct wlb_seconds kept = wlb_layer_attention_s(&cost, n, n),
			   least = wlb_layer_attention_least_s(&cost, n * n / 2.0);
	assert_near(kept.forward, qk_s + pv_s + 9.0 * scores_s, 1e-12);
	assert_near(kept.backward, qk_s + 3.0 * pv_s + 11.0 * scores_s, 1e-12);
	assert_true(least.forward <= kept.forward && least.backward <= kept.backward);
	assert_true(kept.forward > 3.0 * wlb_layer_attention_s(&of_fused, n, n).forward);
	plan.recompute = WLB_RECOMPUTE_SELECTIVE;
	struct wlb_seconds again = wlb_layer_attention_s(&cost, n, n);
	assert_near(again.backward, kept.backward + kept.forward, 1e-12);
	assert_near(again.forward, kept.forward, 0.0);
}

/* Norms and sums of whole rows on 4 ranks take as long as on one; elementwise operations as many times their traffic.
 */
static void rows_and_elementwise_traffic_are_the_trainers(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_plan one = plan_of(1, 1, 1, 1, 1, 8), four = plan_of(4, 1, 1, 1, 1, 8);
	struct wlb_cost_options usual, other;
	wlb_cost_options_init(&usual);
	other = usual;
	other.whole_rows = 1;
	const struct wlb_layer_cost shared = {&model, &machine, &usual, &four},
				    whole = {&model, &machine, &other, &four};
	const struct wlb_layer_cost alone = {&model, &machine, &usual, &one};
	double wide = 4096.0 * 2.0 * 10.0 * 4096.0 / machine.memory_bytes_per_s; /* two norms and two sums, forward */
	double more = wlb_layer_elementwise_s(&whole, 4096).forward - wlb_layer_elementwise_s(&shared, 4096).forward;
	assert_near(more, 0.75 * wide, 1e-9);
	other.whole_rows = 0;
	other.elementwise = 3.0;
	const struct wlb_layer_cost slow = {&model, &machine, &other, &one};
	machine.operation_s = 0.0;
	assert_near(wlb_layer_elementwise_s(&slow, 4096).backward, 3.0 * wlb_layer_elementwise_s(&alone, 4096).backward,
	            1e-12);
	/* A fused loss has 2 bytes of a logit forward and 4 backward for 38 and 14, whatever the other operations have.
	 */
	double logit_s = 4096.0 * (double)model.vocab_size / machine.memory_bytes_per_s;
	other.elementwise = 1.0;
	struct wlb_seconds apart = wlb_head_s(&slow, 4096), fused;
	other.fused_loss = 1;
	fused = wlb_head_s(&slow, 4096);
	assert_near(apart.forward - fused.forward, 36.0 * logit_s, 1e-9);
	assert_near(apart.backward - fused.backward, 10.0 * logit_s, 1e-9);
}

/* Four times as many GPUs as a node has: two doublings. */
static void computation_grows_with_the_gpus(void **state)
{
	(void)state;
	struct wlb_machine machine = tiled();
	struct wlb_model model = llama_7b();
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	options.growth = 0.01;
	struct wlb_plan node = plan_of(8, 1, 1, 1, 1, 8), more = plan_of(8, 1, 1, 4, 1, 8);
	const struct wlb_layer_cost of_node = {&model, &machine, &options, &node},
				    of_more = {&model, &machine, &options, &more};
	assert_near(wlb_slowest_rank(&of_node), 1.0, 0.0);
	assert_near(wlb_slowest_rank(&of_more), 1.02, 1e-12);
}

static void wrong_options_are_refused(void **state)
{
	(void)state;
	struct wlb_error error;
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	assert_int_equal(wlb_cost_options_check(&options, &error), 0);
	options.tp_overlap.backward = 1.5;
	assert_int_equal(wlb_cost_options_check(&options, &error), -1);
	assert_non_null(strstr(error.message, "tp_overlap is 1.5"));
	wlb_cost_options_init(&options);
	options.cp_overlap.forward = NAN;
	assert_int_equal(wlb_cost_options_check(&options, &error), -1);
	wlb_cost_options_init(&options);
	options.gradient_bytes = 3;
	assert_int_equal(wlb_cost_options_check(&options, &error), -1);
	assert_non_null(strstr(error.message, "gradient_bytes is 3"));
	wlb_cost_options_init(&options);
	options.growth = 0.5;
	assert_int_equal(wlb_cost_options_check(&options, &error), -1);
	assert_non_null(strstr(error.message, "growth is 0.5"));
	wlb_cost_options_init(&options);
	options.elementwise = 0.5;
	assert_int_equal(wlb_cost_options_check(&options, &error), -1);
	assert_non_null(strstr(error.message, "elementwise is 0.5"));
	wlb_cost_options_init(&options);
	options.fragmentation = 1.5;
	assert_int_equal(wlb_cost_options_check(&options, &error), -1);
	assert_non_null(strstr(error.message, "fragmentation is 1.5: it must lie between 0 and 1"));
	wlb_cost_options_init(&options);
	options.context_bytes = NAN;
	assert_int_equal(wlb_cost_options_check(&options, &error), -1);
	wlb_cost_options_init(&options);
	options.logit_bytes = 0.0;
	assert_int_equal(wlb_cost_options_check(&options, &error), -1);
	assert_non_null(strstr(error.message, "logit_bytes is 0"));
	wlb_cost_options_init(&options);
	options.optimizer_bytes = 2.0;
	assert_int_equal(wlb_cost_options_check(&options, &error), -1);
	assert_non_null(strstr(error.message, "optimizer_bytes is 2: it must lie between 4 and 12"));
	wlb_cost_options_init(&options);
	options.trainer = (enum wlb_cost_trainer)7;
	assert_int_equal(wlb_cost_options_check(&options, &error), -1);
	assert_non_null(strstr(error.message, "trainer is 7"));
	wlb_cost_options_init(&options);
	options.halved_rows = 1;
	assert_int_equal(wlb_cost_options_check(&options, &error), -1);
	assert_non_null(strstr(error.message, "halved_rows is 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_product_costs_by_its_shape),
		cmocka_unit_test(small_shards_waste_the_gpu),
		cmocka_unit_test(the_worker_orders_gathered_keys),
		cmocka_unit_test(every_overlap_is_an_option),
		cmocka_unit_test(the_worker_hides_gradients_of_keys_behind_one_product),
		cmocka_unit_test(the_worker_gathers_keys_beside_the_queries),
		cmocka_unit_test(only_what_overlaps_computation_is_hidden),
		cmocka_unit_test(keys_arrive_beside_later_attention),
		cmocka_unit_test(no_part_is_negative_and_all_sum_to_the_step),
		cmocka_unit_test(some_layers_are_recomputed),
		cmocka_unit_test(modules_are_computed_again),
		cmocka_unit_test(modules_communicate_again),
		cmocka_unit_test(sets_have_names),
		cmocka_unit_test(rows_of_the_embedding_may_be_a_product),
		cmocka_unit_test(biases_and_copies_may_be_operations_of_their_own),
		cmocka_unit_test(activations_can_be_released),
		cmocka_unit_test(utilization_has_two_conventions),
		cmocka_unit_test(a_worker_runs_other_operations),
		cmocka_unit_test(a_worker_pays_for_angles_and_for_messages),
		cmocka_unit_test(halves_hide_what_products_can),
		cmocka_unit_test(a_worker_updates_beside_the_next_step),
		cmocka_unit_test(halves_shorten_a_step),
		cmocka_unit_test(a_measured_operation_takes_its_own_time),
		cmocka_unit_test(gemma_has_further_operations),
		cmocka_unit_test(an_operation_that_was_not_measured_takes_its_traffic),
		cmocka_unit_test(what_is_no_operation_has_no_traffic),
		cmocka_unit_test(measured_operations_keep_the_sums_and_the_bounds),
		cmocka_unit_test(experts_share_the_tokens),
		cmocka_unit_test(latent_attention_and_dense_layers_have_their_products),
		cmocka_unit_test(rows_are_sent_once_to_a_node),
		cmocka_unit_test(rows_are_sent_once_to_a_rank),
		cmocka_unit_test(a_gate_in_turn_gives_a_row_neighbours),
		cmocka_unit_test(experts_of_one_kernel_share_its_waves),
		cmocka_unit_test(experts_kernels_gate_and_cast),
		cmocka_unit_test(layers_without_rotary_embeddings_do_not_rotate),
		cmocka_unit_test(rows_with_experts_travel_beside_another_micro_batch),
		cmocka_unit_test(operations_of_pytorch_have_their_own_traffic),
		cmocka_unit_test(an_mlp_without_a_gate_has_two_products),
		cmocka_unit_test(unfused_attention_moves_its_scores),
		cmocka_unit_test(rows_and_elementwise_traffic_are_the_trainers),
		cmocka_unit_test(computation_grows_with_the_gpus),
		cmocka_unit_test(wrong_options_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
