/* The shape of a model: its rules, its parameters, its cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "tests/unit/libwlb/models.h"

/* As published. */
static void test_parameters_of_known_models(void **state)
{
	(void)state;
	struct wlb_model llama_3_2_1b = {.hidden_size = 2048,
	                                 .intermediate_size = 8192,
	                                 .num_hidden_layers = 16,
	                                 .num_attention_heads = 32,
	                                 .num_key_value_heads = 8,
	                                 .head_dim = 64,
	                                 .vocab_size = 128256,
	                                 .tie_word_embeddings = 1};
	assert_int_equal(wlb_model_parameters(&llama_2_7b), INT64_C(6738415616));
	assert_int_equal(wlb_model_parameters(&llama_3_8b), INT64_C(8030261248));
	assert_int_equal(wlb_model_parameters(&llama_3_2_1b), INT64_C(1235814400));
	llama_3_2_1b.tie_word_embeddings = 0;
	assert_int_equal(wlb_model_parameters(&llama_3_2_1b), INT64_C(1235814400) + 128256 * 2048);
}

/* 46.7 billion, of which 12.9 compute a token (Jiang et al. 2024). A token is multiplied by two experts of eight. */
static void test_experts(void **state)
{
	(void)state;
	const struct wlb_model *m = &mixtral_8x7b;
	int64_t expert = INT64_C(3) * 4096 * 14336, attention = INT64_C(4096) * (2 * 4096 + 2 * 1024),
		router = 4096 * 8;
	assert_int_equal(wlb_model_parameters(m), INT64_C(46702792704));
	assert_int_equal(wlb_model_active_parameters(m), INT64_C(46702792704) - 32 * 6 * expert);
	assert_int_equal(wlb_model_layer_matrix_parameters(m), attention + router + 8 * expert);
	assert_int_equal(wlb_model_active_parameters(&llama_3_8b), wlb_model_parameters(&llama_3_8b));
	double pair = 4.0 * 4096;
	assert_true(wlb_cost_document(m, 1) == 32 * (2.0 * (double)(attention + router + 2 * expert) + pair));
}

static void test_good_models(void **state)
{
	(void)state;
	struct wlb_error error;
	assert_int_equal(wlb_model_check(&llama_2_7b, &error), 0);
	assert_int_equal(wlb_model_check(&llama_3_8b, &error), 0);
	assert_int_equal(wlb_model_check(&mixtral_8x7b, &error), 0);
}

static void expect_refused(const struct wlb_model *model, const char *field)
{
	struct wlb_error error;
	assert_int_equal(wlb_model_check(model, &error), -1);
	if (strncmp(error.message, field, strlen(field)) != 0)
		fail_msg("'%s' expected first in: %s", field, error.message);
}

static void test_each_count_has_bounds(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t offset;
	} fields[] = {
		{"hidden_size", offsetof(struct wlb_model, hidden_size)},
		{"intermediate_size", offsetof(struct wlb_model, intermediate_size)},
		{"num_hidden_layers", offsetof(struct wlb_model, num_hidden_layers)},
		{"num_attention_heads", offsetof(struct wlb_model, num_attention_heads)},
		{"num_key_value_heads", offsetof(struct wlb_model, num_key_value_heads)},
		{"head_dim", offsetof(struct wlb_model, head_dim)},
		{"vocab_size", offsetof(struct wlb_model, vocab_size)},
		{"max_position_embeddings", offsetof(struct wlb_model, max_position_embeddings)},
	};
	static const int64_t bad[] = {0, -1, INT64_MIN, INT64_MAX};
	for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++) {
		for (size_t b = 0; b < sizeof(bad) / sizeof(bad[0]); b++) {
			struct wlb_model m = llama_3_8b;
			memcpy((char *)&m + fields[f].offset, &bad[b], sizeof(bad[b]));
			expect_refused(&m, fields[f].name);
		}
	}
}

static void test_rules_between_fields(void **state)
{
	(void)state;
	static const double bad_theta[] = {0, -1, 0.5, INFINITY, NAN};
	static const double bad_eps[] = {0, -1e-6, 1, INFINITY, NAN};
	struct wlb_model m = llama_3_8b;
	m.num_key_value_heads = 3;
	expect_refused(&m, "num_key_value_heads is 3: it must divide num_attention_heads, 32");
	m = llama_3_8b;
	m.head_dim = 127;
	expect_refused(&m, "head_dim is 127: it must be even");
	for (size_t i = 0; i < sizeof(bad_theta) / sizeof(bad_theta[0]); i++) {
		m = llama_3_8b;
		m.rope_theta = bad_theta[i];
		expect_refused(&m, "rope_theta");
	}
	for (size_t i = 0; i < sizeof(bad_eps) / sizeof(bad_eps[0]); i++) {
		m = llama_3_8b;
		m.rms_norm_eps = bad_eps[i];
		expect_refused(&m, "rms_norm_eps");
	}
}

static void test_rules_of_experts(void **state)
{
	(void)state;
	struct wlb_model m = mixtral_8x7b;
	m.num_experts = 0;
	expect_refused(&m, "num_experts is 0: it must be between 1 and 292");
	m.num_experts = 293; /* x 14,336 is above 2^22 */
	expect_refused(&m, "num_experts is 293");
	m = mixtral_8x7b;
	m.num_experts_per_tok = 9;
	expect_refused(&m, "num_experts_per_tok is 9: it must be between 1 and 8");
	m = mixtral_8x7b;
	m.dense_layers = 33;
	expect_refused(&m, "dense_layers is 33: it must be between 1 and 32");
	m.dense_layers = 1;
	expect_refused(&m, "dense_intermediate_size is 0");
	m = mixtral_8x7b;
	m.shared_intermediate_size = -1;
	expect_refused(&m, "shared_intermediate_size is -1");
	m = mixtral_8x7b;
	m.v_head_dim = 128;
	expect_refused(&m, "q_lora_rank is 0, kv_lora_rank 0, qk_rope_head_dim 0, v_head_dim 128: they must be 0");
	m = deepseek_v3;
	m.num_key_value_heads = 64;
	expect_refused(&m, "num_key_value_heads is 64: with latent attention it must be that of queries, 128");
	m = deepseek_v3;
	m.qk_rope_head_dim = 193;
	expect_refused(&m, "qk_rope_head_dim is 193");
	m = llama_3_8b;
	m.shared_intermediate_size = 8;
	expect_refused(&m, "shared_intermediate_size is 8: it must be 0");
	m = llama_3_8b;
	m.num_experts = 8;
	expect_refused(&m, "num_experts is 8: it must be 0 in a family without experts");
}

static void test_cost_grows_with_length(void **state)
{
	(void)state;
	double before = wlb_cost_document(&llama_3_8b, 0);
	assert_true(before == 0);
	for (int64_t tokens = 1; tokens < 200000; tokens += tokens / 3 + 1) {
		double cost = wlb_cost_document(&llama_3_8b, tokens);
		assert_true(cost > before);
		before = cost;
	}
}

/* Attention makes one long document dearer than two of half its length, and the more so the longer it is. */
static void test_cost_is_superadditive(void **state)
{
	(void)state;
	double share_before = 1;
	for (int64_t tokens = 2; tokens <= 1 << 20; tokens *= 2) {
		double share = 2 * wlb_cost_document(&llama_3_8b, tokens / 2) / wlb_cost_document(&llama_3_8b, tokens);
		assert_true(share < share_before);
		assert_true(share > 0.5);
		share_before = share;
	}
	assert_true(share_before < 0.6);
}

/* For short documents: two operations for each weight that multiplies. */
static void test_cost_of_short_documents(void **state)
{
	(void)state;
	const struct wlb_model *m = &llama_2_7b;
	double weights = (double)(wlb_model_parameters(m) - 2 * m->vocab_size * m->hidden_size);
	double ratio = wlb_cost_document(m, 1) / (2 * weights);
	assert_true(ratio > 0.999 && ratio < 1.001);
}

/* Query i attends to i + 1 keys, and to no more than the window has. */
static void test_cost_within_a_window(void **state)
{
	(void)state;
	enum { WINDOW = 7 };
	struct wlb_model within = llama_3_8b, beyond = llama_3_8b;
	double pair = wlb_cost_document(&within, 2) - 2.0 * wlb_cost_document(&within, 1), pairs = 0.0;
	beyond.sliding_window = WINDOW;
	for (int64_t tokens = 1; tokens <= 3 * WINDOW; tokens++) {
		pairs += (double)(tokens > WINDOW ? tokens - WINDOW : 0);
		double saved = wlb_cost_document(&within, tokens) - wlb_cost_document(&beyond, tokens);
		assert_true(fabs(saved - pair * pairs) <= 1e-12 * wlb_cost_document(&within, tokens));
	}
	double saved = wlb_cost_document(&within, 3 * WINDOW) - wlb_cost_document(&beyond, 3 * WINDOW);
	beyond.full_layers[0] = 0xff; /* 8 of 32 layers have no window */
	assert_true(wlb_model_layer_window(&beyond, 7) == 0 && wlb_model_layer_window(&beyond, 8) == WINDOW);
	double saved_by_some = wlb_cost_document(&within, 3 * WINDOW) - wlb_cost_document(&beyond, 3 * WINDOW);
	assert_true(fabs(saved_by_some - 0.75 * saved) <= 1e-12 * wlb_cost_document(&within, 3 * WINDOW));
}

static void test_rules_of_rotary_positions(void **state)
{
	(void)state;
	struct wlb_model m = llama_3_8b;
	m.rotary_dim = 130;
	expect_refused(&m, "rotary_dim is 130");
	m.rotary_dim = 63;
	expect_refused(&m, "rotary_dim is 63");
	m = llama_3_8b;
	m.rope_scaling = (struct wlb_rope_scaling){.type = WLB_ROPE_LINEAR, .factor = 0.5};
	expect_refused(&m, "rope_scaling: factor is 0.5");
	m.rope_scaling = (struct wlb_rope_scaling){
		.type = WLB_ROPE_LLAMA3, .factor = 8, .original_max_position_embeddings = 8192, .low_freq_factor = 4};
	expect_refused(&m, "rope_scaling: low_freq_factor is 4, high_freq_factor 0");
	m.rope_scaling = (struct wlb_rope_scaling){.type = WLB_ROPE_YARN, .factor = 8};
	expect_refused(&m, "rope_scaling: original_max_position_embeddings is 0");
	m = llama_3_8b;
	m.family = WLB_FAMILIES;
	expect_refused(&m, "family is ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parameters_of_known_models), cmocka_unit_test(test_good_models),
		cmocka_unit_test(test_each_count_has_bounds),      cmocka_unit_test(test_rules_between_fields),
		cmocka_unit_test(test_cost_grows_with_length),     cmocka_unit_test(test_cost_is_superadditive),
		cmocka_unit_test(test_cost_of_short_documents),    cmocka_unit_test(test_cost_within_a_window),
		cmocka_unit_test(test_rules_of_rotary_positions),  cmocka_unit_test(test_experts),
		cmocka_unit_test(test_rules_of_experts),
	};
	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
