#include "tests/unit/libwlb/sim_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/libwlb/models.h"

struct wlb_machine h100(void)
{
	return (struct wlb_machine){
		.name = "H100",
		.gpus_per_node = 8,
		.peak_flops = 989.4e12,
		.gemm_efficiency = 0.72,
		.attention_efficiency = 0.647,
		.attention_backward_efficiency = 0.571,
		.attention_tile_tokens = 128,
		.attention_overhead_keys = 200.0,
		.memory_bytes = 80e9,
		.memory_bytes_per_s = 3.35e12,
		.node_link = {370.8e9, 3.4e-6},
		.network_link = {50e9, 14e-6},
		.switch_taper = 1.0,
	};
}

struct wlb_model llama_7b(void)
{
	return llama_2_7b;
}

struct wlb_model llama_70b(void)
{
	struct wlb_model model = llama_7b();
	model.hidden_size = 8192;
	model.intermediate_size = 28672;
	model.num_hidden_layers = 80;
	model.num_attention_heads = 64;
	model.num_key_value_heads = 8;
	return model;
}

struct wlb_plan plan_of(int tp, int cp, int pp, int dp, int interleave, int micro_batches)
{
	return (struct wlb_plan){.layout = {tp, cp, pp, dp},
	                         .interleave = interleave,
	                         .micro_batches = micro_batches,
	                         .zero_stage = 1,
	                         .recompute = WLB_RECOMPUTE_SELECTIVE};
}

struct wlb_step equal_step(int32_t micro_batches, const int64_t *tokens, size_t count)
{
	struct wlb_packed_span *spans = calloc((size_t)micro_batches * count, sizeof(*spans));
	assert_non_null(spans);
	for (size_t i = 0; i < (size_t)micro_batches * count; i++)
		spans[i] = (struct wlb_packed_span){.span = {.document = (int64_t)i, .tokens = tokens[i % count]},
		                                    .micro_batch = (int32_t)(i / count)};
	return (struct wlb_step){
		.spans = spans, .count = (size_t)micro_batches * count, .micro_batches = micro_batches};
}

uint64_t random_bits(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

struct wlb_step random_step(int32_t micro_batches, int64_t max_tokens, uint64_t *state)
{
	struct wlb_packed_span *spans = calloc((size_t)micro_batches * 4, sizeof(*spans));
	assert_non_null(spans);
	size_t count = 0;
	for (int32_t j = 0; j < micro_batches; j++)
		for (uint64_t n = random_bits(state) % 5; n > 0; n--) {
			int64_t tokens = (int64_t)(random_bits(state) % (uint64_t)max_tokens);
			spans[count++] = (struct wlb_packed_span){.span = {.tokens = tokens}, .micro_batch = j};
		}
	return (struct wlb_step){.spans = spans, .count = count, .micro_batches = micro_batches};
}

void free_step(struct wlb_step *step)
{
	free((void *)step->spans);
}

struct wlb_sim_result simulate(const struct wlb_model *model, const struct wlb_machine *machine,
                               const struct wlb_sim_options *options, const struct wlb_step *step)
{
	struct wlb_error error = {""};
	struct wlb_sim_result result;
	struct wlb_sim *sim = wlb_sim_new(model, machine, options, &error);
	assert_string_equal(error.message, "");
	assert_non_null(sim);
	int rc = wlb_sim_step(sim, step, &result, &error);
	wlb_sim_free(sim);
	assert_string_equal(error.message, "");
	assert_int_equal(rc, 0);
	return result;
}

double sum_of_parts(const struct wlb_sim_time *t)
{
	return t->compute_s + t->recompute_s + t->tp_s + t->cp_s + t->ep_s + t->pp_s + t->dp_s + t->optimizer_s +
	       t->bubble_s + t->cp_imbalance_s + t->imbalance_s + t->straggler_s;
}
