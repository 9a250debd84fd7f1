/* config.json: what Hugging Face writes is read, and what cannot be trained as asked is refused by name. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model_config.h"
#include "tests/unit/data/fixture.h"

#define REQUIRED                                                                                                       \
	"\"hidden_size\":64,\"intermediate_size\":128,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"vocab_"      \
	"size\":257"

static int read_config(void **state, const char *text, struct wlb_model *model, struct wlb_error *error)
{
	return wlb_model_config_read(fixture_write_text(state, "config.json", text), WLB_MODEL_TO_TRAIN, model, error);
}

static void expect_refused(void **state, const char *text, const char *reason)
{
	struct wlb_model model;
	struct wlb_error error;
	assert_int_equal(read_config(state, text, &model, &error), -1);
	assert_says(error.message, "config.json");
	assert_says(error.message, reason);
}

static void test_defaults(void **state)
{
	struct wlb_model m;
	struct wlb_error error;
	assert_int_equal(read_config(state, "{" REQUIRED "}", &m, &error), 0);
	assert_int_equal(m.hidden_size, 64);
	assert_int_equal(m.intermediate_size, 128);
	assert_int_equal(m.num_hidden_layers, 2);
	assert_int_equal(m.num_attention_heads, 4);
	assert_int_equal(m.num_key_value_heads, 4);
	assert_int_equal(m.head_dim, 16);
	assert_int_equal(m.vocab_size, 257);
	assert_int_equal(m.max_position_embeddings, 2048);
	assert_true(m.rope_theta == 10000.0 && m.rms_norm_eps == 1e-6);
	assert_false(m.tie_word_embeddings);
}

/* As published with Llama 3 8B, fields we have no use for included. */
static void test_llama_3(void **state)
{
	struct wlb_model m;
	struct wlb_error error;
	assert_int_equal(
		read_config(
			state,
			"{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
			"\"bos_token_id\":128000,\"eos_token_id\":128001,\"hidden_act\":\"silu\",\"hidden_size\":4096,"
			"\"initializer_range\":0.02,\"intermediate_size\":14336,\"max_position_embeddings\":8192,"
			"\"model_type\":\"llama\",\"num_attention_heads\":32,\"num_hidden_layers\":32,"
			"\"num_key_value_heads\":8,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":null,"
			"\"rope_theta\":500000.0,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\","
			"\"transformers_version\":\"4.40.0.dev0\",\"use_cache\":true,\"vocab_size\":128256}",
			&m, &error),
		0);
	assert_int_equal(m.num_key_value_heads, 8);
	assert_int_equal(m.head_dim, 128);
	assert_int_equal(m.max_position_embeddings, 8192);
	assert_true(m.rope_theta == 500000.0 && m.rms_norm_eps == 1e-5);
	assert_int_equal(wlb_model_parameters(&m), INT64_C(8030261248));
}

static void test_transformers_5(void **state)
{
	struct wlb_model m;
	struct wlb_error error;
	assert_int_equal(read_config(state,
	                             "{" REQUIRED ",\"head_dim\":32,\"tie_word_embeddings\":true,"
	                             "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":5e5}}",
	                             &m, &error),
	                 0);
	assert_int_equal(m.head_dim, 32);
	assert_true(m.tie_word_embeddings);
	assert_true(m.rope_theta == 500000.0);
}

/* Files as they are published, small: what each kind of model is refused by, or NULL where it trains as it is. */
static void test_published_files(void **state)
{
	static const struct {
		const char *name;
		const char *fields;
		const char *reason;
	} files[] = {
		{"Llama 2",
	         "\"_name_or_path\":\"x\",\"architectures\":[\"LlamaForCausalLM\"],\"bos_token_id\":1,\"eos_token_id\":"
	         "2,"
	         "\"hidden_act\":\"silu\",\"initializer_range\":0.02,\"max_position_embeddings\":4096,"
	         "\"model_type\":\"llama\",\"num_key_value_heads\":4,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,"
	         "\"rope_scaling\":null,\"tie_word_embeddings\":false,\"torch_dtype\":\"float16\","
	         "\"transformers_version\":\"4.31.0.dev0\",\"use_cache\":true",
	         NULL},
		{"SmolLM 2",
	         "\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
	         "\"is_llama_config\":true,\"mlp_bias\":false,\"model_type\":\"llama\",\"rope_interleaved\":false,"
	         "\"rope_theta\":100000,\"_attn_implementation_autoset\":true,\"tie_word_embeddings\":true",
	         NULL},
		{"Llama, written by Transformers 5",
	         "\"architectures\":[\"LlamaForCausalLM\"],\"dtype\":\"bfloat16\",\"model_type\":\"llama\","
	         "\"pad_token_id\":null,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"}",
	         NULL},
		{"Llama 3.1",
	         "\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"rope_scaling\":{\"factor\":8.0,"
	         "\"low_freq_factor\":1.0,\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"}",
	         "rope_scaling: high_freq_factor is missing"},
		{"Mistral 0.1",
	         "\"architectures\":[\"MistralForCausalLM\"],\"model_type\":\"mistral\",\"num_key_value_heads\":2,"
	         "\"sliding_window\":4096",
	         NULL},
		{"Qwen 2.5",
	         "\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\",\"num_key_value_heads\":2,"
	         "\"use_sliding_window\":false",
	         NULL},
		{"Phi 3",
	         "\"architectures\":[\"Phi3ForCausalLM\"],\"model_type\":\"phi3\",\"partial_rotary_factor\":1.0", NULL},
		{"Gemma", "\"architectures\":[\"GemmaForCausalLM\"],\"hidden_activation\":\"gelu_pytorch_tanh\"",
	         "architectures is [\"GemmaForCausalLM\"]"},
		{"Gemma without its name", "\"hidden_activation\":\"gelu_pytorch_tanh\"",
	         "hidden_activation is \"gelu_pytorch_tanh\": only \"silu\""},
		{"Granite without its name",
	         "\"attention_multiplier\":0.015625,\"embedding_multiplier\":12,\"logits_scaling\":8,"
	         "\"residual_multiplier\":0.22",
	         "embedding_multiplier is 12"},
		{"DeepSeek V3 without its name", "\"kv_lora_rank\":512,\"q_lora_rank\":1536,\"v_head_dim\":128",
	         "q_lora_rank is 1536"},
		{"OLMo without its name", "\"clip_qkv\":8.0", "clip_qkv is 8.0"},
		{"Mixtral without its name", "\"num_experts_per_tok\":2,\"num_local_experts\":8",
	         "num_local_experts is 8"},
		{"SmolLM 3 without its name", "\"no_rope_layers\":[1,1,1,0]",
	         "no_rope_layers is [1,1,1,0]: only smollm3"},
	};
	struct wlb_model m;
	struct wlb_error error;
	char text[2048];
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(text, sizeof(text), "{" REQUIRED ",%s}", files[i].fields);
		if (files[i].reason != NULL)
			expect_refused(state, text, files[i].reason);
		else if (read_config(state, text, &m, &error) < 0)
			fail_msg("%s: %s", files[i].name, error.message);
	}
}

static void test_each_required_field(void **state)
{
	static const char *const fields[] = {"hidden_size", "intermediate_size", "num_hidden_layers",
	                                     "num_attention_heads", "vocab_size"};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		char text[512], reason[64];
		snprintf(text, sizeof(text), "{" REQUIRED "}");
		memset(strstr(text, fields[i]), 'x', 1); /* misspelt: missing */
		snprintf(reason, sizeof(reason), "%s is missing", fields[i]);
		expect_refused(state, text, reason);
	}
}

static void test_refused_fields(void **state)
{
	static const struct {
		const char *field;
		const char *reason;
	} cases[] = {
		{"\"model_type\":\"mixtral\"",
	         "model_type is \"mixtral\": it has experts; wlb-worker does not train this family"},
		{"\"model_type\":\"gemma\"",
	         "model_type is \"gemma\": only llama, mistral, qwen2, qwen3, olmo2, phi3, "
	         "smollm3, mixtral, qwen3_moe, olmoe, nemotron, gemma2, gemma3_text, qwen2_moe, "
	         "deepseek_v2, deepseek_v3, gpt_oss are known"},
		{"\"model_type\":3", "model_type is an integer"},
		{"\"hidden_act\":\"gelu\"", "hidden_act is \"gelu\": only \"silu\""},
		{"\"attention_bias\":true", "attention_bias is true"},
		{"\"mlp_bias\":true", "mlp_bias is true"},
		{"\"mlp_bias\":0", "mlp_bias is an integer: it must be true or false"},
		{"\"attention_dropout\":0.1", "attention_dropout is 0.1"},
		{"\"rope_parameters\":{\"type\":\"linear\",\"factor\":4},\"rope_scaling\":{\"type\":\"linear\","
	         "\"factor\":2}",
	         "rope_parameters is there too"},
		{"\"rope_scaling\":{\"factor\":8.0}", "rope_scaling: factor is 8.0: only 1 can be trained"},
		{"\"rope_scaling\":\"linear\"", "rope_scaling is a string: it must be an object"},
		{"\"rope_scaling\":{\"type\":\"linear\"}", "rope_scaling: factor is missing"},
		{"\"rope_scaling\":{\"type\":\"linear\",\"factor\":0.5}", "rope_scaling: factor is 0.5"},
		{"\"rope_scaling\":{\"type\":\"linear\",\"factor\":2,\"low_freq_factor\":1}",
	         "rope_scaling: low_freq_factor is 1: this key is not known"},
		{"\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}",
	         "rope_scaling: type is \"dynamic\": only \"default\", \"linear\", \"llama3\" and \"yarn\" can be "
	         "trained; "
	         "\"dynamic\" and \"longrope\" change with the length of each text"},
		{"\"rope_parameters\":{\"rope_type\":\"default\",\"type\":\"yarn\"}",
	         "rope_parameters: rope_type is \"default\": type has another value"},
		{"\"rope_parameters\":{\"rope_type\":\"default\",\"partial_rotary_factor\":0.5}",
	         "partial_rotary_factor is 0.5: only 1 can be trained"},
		{"\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\"}}",
	         "rope_parameters: full_attention is {\"rope_type\":\"default\"}: this key is not known"},
		{"\"rope_parameters\":{\"mrope_section\":[16,24,24]}", "rope_parameters: mrope_section is [16,24,24]"},
		{"\"rope_theta\":5e5,\"rope_parameters\":{\"rope_theta\":1e6}",
	         "rope_theta is 500000, and 1e+06 in rope_parameters: they must be equal"},
		{"\"partial_rotary_factor\":0.5", "partial_rotary_factor is 0.5: only 1 can be trained"},
		{"\"rotary_pct\":0.25", "rotary_pct is 0.25"},
		{"\"architectures\":[\"MixtralForCausalLM\"]", "model_type is \"mixtral\": it has experts"},
		{"\"architectures\":[\"GemmaForCausalLM\"]",
	         "architectures is [\"GemmaForCausalLM\"]: only LlamaForCausalLM, MistralForCausalLM"},
		{"\"model_type\":\"llama\",\"architectures\":[\"Phi3ForCausalLM\"]",
	         "architectures is [\"Phi3ForCausalLM\"]: model_type is that of another family"},
		{"\"architectures\":[\"LlamaForCausalLM\",\"Other\"]", "architectures is ["},
		{"\"architectures\":\"LlamaForCausalLM\"", "architectures is \"LlamaForCausalLM\""},
		{"\"sliding_window\":0", "sliding_window is 0: it must be at least 1, or null"},
		{"\"layer_types\":[\"full_attention\",\"sliding_attention\"]",
	         "layer_types has \"sliding_attention\": sliding_window must say"},
		{"\"layer_types\":[\"full_attention\",\"chunked_attention\"]", "layer_types is \"chunked_attention\""},
		{"\"layer_types\":[\"full_attention\"]", "it must be a list with an entry a layer"},
		{"\"sliding_window\":64", "sliding_window is 64: a llama has none in Transformers"},
		{"\"model_type\":\"mistral\",\"num_key_value_heads\":4,\"layer_types\":[\"full_attention\","
	         "\"sliding_attention\"]",
	         "all layers of this family have the sliding_window"},
		{"\"model_type\":\"qwen2\",\"num_key_value_heads\":4,\"use_sliding_window\":true,"
	         "\"max_window_layers\":1.5",
	         "max_window_layers is a number: it must be a whole number"},
		{"\"model_type\":\"mistral\",\"num_key_value_heads\":4,\"sliding_window\":1073741825",
	         "sliding_window is 1073741825: it must be between 1 and 1073741824"},
		{"\"layer_types\":\"full_attention\"", "layer_types is \"full_attention\": it must be a list"},
		{"\"model_type\":\"phi3\",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2}",
	         "rope_scaling: a type other than \"default\" is \"longrope\" in phi3"},
		{"\"model_type\":\"phi3\",\"partial_rotary_factor\":0.01", "partial_rotary_factor is 0.01"},
		{"\"model_type\":\"smollm3\",\"no_rope_layers\":[1,0],\"no_rope_layer_interval\":3",
	         "no_rope_layers is [1,0]: each must be 1, or 0 in every layer of no_rope_layer_interval"},
		{"\"model_type\":\"smollm3\",\"no_rope_layers\":[1]",
	         "no_rope_layers is [1]: it must have an entry a layer"},
		{"\"model_type\":\"mistral\"", "num_key_value_heads is 8: it must divide"},
		{"\"model_type\":\"qwen2\",\"num_key_value_heads\":4,\"attention_bias\":true",
	         "attention_bias is true"},
		{"\"initializer_range\":-1", "initializer_range is -1: it must be from 0 to 10"},
		{"\"embedding_multiplier\":12.0", "embedding_multiplier is 12.0: only 1 can be trained"},
		{"\"attention_multiplier\":0.0078125", "attention_multiplier is 0.0078125: it must be null"},
		{"\"final_logit_softcapping\":30.0", "final_logit_softcapping is 30.0"},
		{"\"kv_lora_rank\":512", "kv_lora_rank is 512"},
		{"\"num_experts\":128", "num_experts is 128: only dense models are known"},
		{"\"num_experts\":1.5", "num_experts is 1.5"},
		{"\"n_routed_experts\":256", "n_routed_experts is 256: only dense models are known"},
		{"\"lm_head_bias\":true", "lm_head_bias is true: only false can be trained"},
		{"\"interpolate_factor\":2", "interpolate_factor is 2: only 1 can be trained"},
		{"\"quantization_config\":{\"bits\":4}", "quantization_config is {\"bits\":4}"},
		{"\"swiglu_limit\":7.0", "swiglu_limit is 7.0: this key is not known, and may change what the model "
	                                 "computes: remove it where it does not"},
		{"\"swiglu_limit\":false", "swiglu_limit is false: this key is not known"},
		{"\"a\\u001b[31m\":\"\\u202e\"", "config.json: a\\u001B[31m is \"\\u202E\": this key"},
		{"\"rope_parameters\":{\"rope_type\":\"llama3\"}", "rope_parameters: factor is missing"},
		{"\"rope_parameters\":[]", "rope_parameters is an array"},
		{"\"rope_theta\":\"x\"", "rope_theta is a string: it must be a number"},
		{"\"rope_theta\":-1", "rope_theta is -1"},
		{"\"rms_norm_eps\":0", "rms_norm_eps is 0"},
		{"\"num_key_value_heads\":3", "num_key_value_heads is 3: it must divide"},
		{"\"num_key_value_heads\":2.5", "num_key_value_heads is a number: it must be a whole number"},
		{"\"num_key_value_heads\":1e300", "num_key_value_heads is a number: it must be a whole number"},
		{"\"head_dim\":15", "head_dim is 15: it must be even"},
		{"\"head_dim\":-16", "head_dim is -16"},
		{"\"max_position_embeddings\":9000000000000000000", "max_position_embeddings is 9000000000000000000"},
		{"\"tie_word_embeddings\":\"no\"", "tie_word_embeddings is a string"},
		{"\"vocab_size\":258", "duplicate object key"},
		{"\"bos_token_id\":99999999999999999999", "too big integer"},
		{"\"initializer_range\":1e999", "real number overflow"},
		{"\"initializer_range\":NaN", "invalid token"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[1024];
		snprintf(text, sizeof(text), "{" REQUIRED ",%s}", cases[i].field);
		expect_refused(state, text, cases[i].reason);
	}
}

static int read_shape(void **state, const char *text, struct wlb_model *model, struct wlb_error *error)
{
	return wlb_model_config_read(fixture_write_text(state, "config.json", text), WLB_MODEL_TO_PLAN, model, error);
}

/* As published with Llama 3.2 1B. */
static void test_llama_3_2(void **state)
{
	static const char text[] =
		"{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
		"\"head_dim\":64,\"hidden_act\":\"silu\",\"hidden_size\":2048,\"intermediate_size\":8192,"
		"\"max_position_embeddings\":131072,\"mlp_bias\":false,\"model_type\":\"llama\","
		"\"num_attention_heads\":32,\"num_hidden_layers\":16,\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,"
		"\"rope_scaling\":{\"factor\":32.0,\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,"
		"\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,"
		"\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\",\"vocab_size\":128256}";
	struct wlb_model m;
	struct wlb_error error;
	assert_int_equal(read_shape(state, text, &m, &error), 0);
	assert_int_equal(wlb_model_parameters(&m), INT64_C(1235814400));
	assert_int_equal(m.rope_scaling.type, WLB_ROPE_DEFAULT); /* not read to plan */
	assert_int_equal(read_config(state, text, &m, &error), 0);
	assert_int_equal(m.rope_scaling.type, WLB_ROPE_LLAMA3);
	assert_true(m.rope_scaling.factor == 32.0 && m.rope_scaling.low_freq_factor == 1.0 &&
	            m.rope_scaling.high_freq_factor == 4.0 &&
	            m.rope_scaling.original_max_position_embeddings == 8192.0);
}

/* Reads REQUIRED and `fields` to train. */
static struct wlb_model read_fields(void **state, const char *fields)
{
	struct wlb_model m;
	struct wlb_error error;
	char text[1024];
	snprintf(text, sizeof(text), "{" REQUIRED ",%s}", fields);
	if (read_config(state, text, &m, &error) < 0)
		fail_msg("%s: %s", fields, error.message);
	return m;
}

/* Fields that a file lacks are those of its family's class in Transformers, and not Llama's. */
static void test_defaults_of_families(void **state)
{
	struct wlb_model m = read_fields(state, "\"model_type\":\"mistral\",\"num_key_value_heads\":2");
	assert_int_equal(m.sliding_window, 4096);
	assert_int_equal(m.max_position_embeddings, 131072);
	m = read_fields(state, "\"model_type\":\"mistral\",\"num_key_value_heads\":null,\"sliding_window\":null");
	assert_int_equal(m.num_key_value_heads, 4);
	assert_int_equal(m.sliding_window, 0);
	m = read_fields(state, "\"model_type\":\"qwen3\",\"num_key_value_heads\":4");
	assert_int_equal(m.head_dim, 128);
	assert_int_equal(m.sliding_window, 0);
	m = read_fields(state, "\"model_type\":\"qwen2\",\"num_key_value_heads\":4,\"use_sliding_window\":true");
	assert_int_equal(m.head_dim, 16);
	assert_int_equal(m.sliding_window, 0); /* of 28 layers on */
	m = read_fields(state, "\"architectures\":[\"Olmo2ForCausalLM\"]");
	assert_int_equal(m.family, WLB_FAMILY_OLMO2);
	assert_true(m.rms_norm_eps == 1e-5);
	m = read_fields(state, "\"architectures\":[\"Phi3ForCausalLM\"],\"partial_rotary_factor\":0.75");
	assert_int_equal(m.family, WLB_FAMILY_PHI3);
	assert_int_equal(m.rotary_dim, 12);
	m = read_fields(state, "\"model_type\":\"smollm3\"");
	assert_int_equal(m.num_key_value_heads, 4);
	assert_int_equal(m.no_rope_layer_interval, 4);
	assert_true(m.tie_word_embeddings && m.rope_theta == 2e6);
	m = read_fields(state, "\"model_type\":\"smollm3\",\"no_rope_layers\":[1,0],\"no_rope_layer_interval\":2");
	assert_true(wlb_model_layer_rotates(&m, 0) && !wlb_model_layer_rotates(&m, 1));
	m = read_fields(state, "\"model_type\":\"smollm3\",\"no_rope_layers\":[1,1]");
	assert_int_equal(m.no_rope_layer_interval, 0);
	m = read_fields(state, "\"layer_types\":[\"full_attention\",\"full_attention\"],\"sliding_window\":512");
	assert_int_equal(m.sliding_window, 0);
}

/* Reads a model of two layers and expects their windows. */
static void expect_windows(void **state, const char *fields, int first, int second)
{
	struct wlb_model m = read_fields(state, fields);
	assert_int_equal(wlb_model_layer_window(&m, 0), first);
	assert_int_equal(wlb_model_layer_window(&m, 1), second);
	assert_true(wlb_model_window_share(&m) == ((first > 0) + (second > 0)) / 2.0);
	assert_int_equal(m.sliding_window > 0, first > 0 || second > 0);
}

static void test_windows_of_layers(void **state)
{
#define QWEN3 "\"model_type\":\"qwen3\",\"num_key_value_heads\":4,\"sliding_window\":9"
#define SMOLLM3 "\"model_type\":\"smollm3\",\"no_rope_layer_interval\":2,\"sliding_window\":9"
	expect_windows(state, "\"model_type\":\"phi3\",\"sliding_window\":2047", 2047, 2047);
	expect_windows(state, "\"model_type\":\"mistral\",\"num_key_value_heads\":4", 4096, 4096);
	expect_windows(state, QWEN3 ",\"max_window_layers\":1", 0, 0);
	expect_windows(state, QWEN3 ",\"use_sliding_window\":true,\"max_window_layers\":1", 0, 9);
	expect_windows(state, QWEN3 ",\"use_sliding_window\":true,\"max_window_layers\":0", 9, 9);
	expect_windows(state,
	               QWEN3 ",\"use_sliding_window\":true,\"max_window_layers\":1,"
	                     "\"layer_types\":[\"sliding_attention\",\"full_attention\"]",
	               9, 0);
	expect_windows(state, SMOLLM3, 0, 0);
	expect_windows(state, SMOLLM3 ",\"use_sliding_window\":true", 0, 9);
#undef QWEN3
#undef SMOLLM3
}

#define GELU "\"hidden_activation\":\"gelu_pytorch_tanh\","

/* The defaults of Gemma2Config, and caps that are null. */
static void test_gemma_2(void **state)
{
	struct wlb_model m = read_fields(state, GELU "\"model_type\":\"gemma2\"");
	assert_int_equal(m.family, WLB_FAMILY_GEMMA2);
	assert_true(m.num_key_value_heads == 4 && m.head_dim == 256 && m.max_position_embeddings == 8192);
	assert_true(m.tie_word_embeddings && m.rope_theta == 1e4 && m.sliding_window == 4096);
	assert_true(m.query_pre_attn_scalar == 256.0 && m.attn_logit_softcapping == 50.0 &&
	            m.final_logit_softcapping == 30.0);
	assert_int_equal(wlb_model_angle_kinds(&m), 1);
	m = read_fields(state, GELU "\"architectures\":[\"Gemma2ForCausalLM\"],\"attn_logit_softcapping\":null,"
	                            "\"final_logit_softcapping\":null,\"query_pre_attn_scalar\":144");
	assert_true(m.query_pre_attn_scalar == 144.0 && m.attn_logit_softcapping == 0.0 &&
	            m.final_logit_softcapping == 0.0);
}

/* Those of Gemma3TextConfig; angles of layers with a window, as Transformers 4 spells them and as 5 does. */
static void test_gemma_3(void **state)
{
	struct wlb_model m = read_fields(state, GELU "\"model_type\":\"gemma3_text\"");
	assert_true(m.rope_theta == 1e6 && m.rope_local_base_freq == 1e4 && m.sliding_window == 4096 &&
	            wlb_model_window_share(&m) == 1.0);
	assert_true(m.attn_logit_softcapping == 0.0 && m.final_logit_softcapping == 0.0);
	m = read_fields(state, GELU "\"model_type\":\"gemma3_text\",\"sliding_window_pattern\":2,\"rope_theta\":5e5,"
	                            "\"rope_local_base_freq\":2e4,\"rope_scaling\":{\"rope_type\":\"linear\","
	                            "\"factor\":8}");
	assert_true(m.rope_theta == 5e5 && m.rope_local_base_freq == 2e4 && m.rope_scaling.factor == 8.0);
	assert_int_equal(wlb_model_layer_angles(&m, 0), WLB_ANGLES_LOCAL);
	assert_int_equal(wlb_model_layer_angles(&m, 1), WLB_ANGLES_GLOBAL);
	m = read_fields(state, GELU "\"model_type\":\"gemma3_text\",\"layer_types\":[\"full_attention\","
	                            "\"full_attention\"],\"rope_parameters\":{\"full_attention\":{\"rope_theta\":3e5},"
	                            "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":3e4}}");
	assert_true(m.rope_theta == 3e5 && m.rope_local_base_freq == 3e4);
	assert_int_equal(wlb_model_layer_angles(&m, 0), WLB_ANGLES_GLOBAL);
}

static void test_gemma_refused(void **state)
{
	static const char *const fields[][2] = {
		{"\"model_type\":\"gemma2\",\"hidden_act\":\"silu\"",
	         "hidden_act is \"silu\": only \"gelu_pytorch_tanh\""},
		{"\"model_type\":\"gemma2\",\"attn_logit_softcapping\":0",
	         "attn_logit_softcapping is 0: it must be above 0"},
		{"\"model_type\":\"gemma2\",\"query_pre_attn_scalar\":-1", "query_pre_attn_scalar is -1"},
		{"\"model_type\":\"gemma2\",\"query_pre_attn_scalar\":1e-9", "it must lie between 0.001 and 1e9"},
		{"\"model_type\":\"gemma2\",\"use_bidirectional_attention\":true",
	         "use_bidirectional_attention is true"},
		{"\"model_type\":\"gemma3_text\",\"attn_logit_softcapping\":50",
	         "attn_logit_softcapping is 50: a model of the family gemma3_text has none"},
		{"\"model_type\":\"gemma3_text\",\"rope_local_base_freq\":0", "rope_local_base_freq is 0"},
		{"\"model_type\":\"gemma3_text\",\"sliding_window_pattern\":0", "sliding_window_pattern is 0"},
		{"\"model_type\":\"gemma3_text\",\"sliding_window\":null", "sliding_window is null"},
		{"\"model_type\":\"gemma3_text\",\"layer_types\":[\"full_attention\"]", "an entry a layer"},
		{"\"model_type\":\"gemma3_text\",\"rope_parameters\":{\"rope_theta\":1e4}",
	         "rope_theta is 10000.0: only the"},
		{"\"model_type\":\"gemma3_text\",\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"linear\","
	         "\"factor\":2}}",
	         "only \"default\" is known of \"sliding_attention\""},
		{"\"model_type\":\"gemma3_text\",\"rope_parameters\":{\"sliding_attention\":{\"rope_theta\":0.5}}",
	         "sliding_attention: rope_theta is 0.5"},
		{"\"model_type\":\"gemma3\",\"text_config\":{},\"vision_config\":{}",
	         "model_type is \"gemma3\": only llama"},
		{"\"final_logit_softcapping\":30", "final_logit_softcapping is 30: only Gemma has it"},
	};
	char text[1024];
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		snprintf(text, sizeof(text), "{" REQUIRED ",%s}", fields[i][0]);
		expect_refused(state, text, fields[i][1]);
	}
}

static void test_forms_of_values(void **state)
{
	struct wlb_model m = read_fields(state, "\"max_position_embeddings\":131072.0,\"hidden_act\":\"swish\"");
	struct wlb_error error;
	assert_int_equal(m.max_position_embeddings, 131072);
	m = read_fields(state, "\"initializer_range\":0.006");
	assert_true(m.initializer_range == 0.006);
	assert_int_equal(read_config(state, "\xef\xbb\xbf{" REQUIRED "}", &m, &error), 0);
	assert_true(m.initializer_range == 0.02);
	/* A folder is that of config.json. */
	assert_int_equal(wlb_model_config_read(*state, WLB_MODEL_TO_TRAIN, &m, &error), 0);
}

static void test_scaled_positions(void **state)
{
	struct wlb_model m = read_fields(state, "\"rope_parameters\":{\"type\":\"linear\",\"factor\":4}");
	assert_int_equal(m.rope_scaling.type, WLB_ROPE_LINEAR);
	assert_true(m.rope_scaling.factor == 4.0);
	m = read_fields(state, "\"rope_scaling\":{\"rope_type\":\"default\"}");
	assert_int_equal(m.rope_scaling.type, WLB_ROPE_DEFAULT);
	m = read_fields(state, "\"max_position_embeddings\":512,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0}");
	assert_int_equal(m.rope_scaling.type, WLB_ROPE_YARN);
	assert_true(m.rope_scaling.original_max_position_embeddings == 512.0 && m.rope_scaling.truncate &&
	            m.rope_scaling.beta_fast == 32.0 && m.rope_scaling.beta_slow == 1.0);
	assert_true(fabs(m.rope_scaling.attention_factor - 1.138629436111989) < 1e-15);
	m = read_fields(state,
	                "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,\"mscale\":0.707,\"mscale_all_dim\":1,"
	                "\"original_max_position_embeddings\":64,\"beta_fast\":16,\"truncate\":false}");
	assert_true(m.rope_scaling.original_max_position_embeddings == 64.0 && !m.rope_scaling.truncate &&
	            m.rope_scaling.beta_fast == 16.0);
	assert_true(fabs(m.rope_scaling.attention_factor - 1.2608037774058554 / 1.3688879454113936) < 1e-15);
}

#define LATENT                                                                                                         \
	"\"kv_lora_rank\":8,\"qk_nope_head_dim\":16,\"qk_rope_head_dim\":8,\"v_head_dim\":12,\"first_k_dense_"         \
	"replace\":1"

static void test_shapes(void **state)
{
	static const char *const same[] = {
		"\"model_type\":\"mistral\",\"num_key_value_heads\":4",
		"\"model_type\":\"qwen2\",\"num_key_value_heads\":4",
		"\"model_type\":\"qwen3\",\"num_key_value_heads\":4,\"attention_bias\":false",
		"\"attention_bias\":true,\"attention_dropout\":0.1",
		"\"num_local_experts\":1,\"rope_parameters\":{\"rope_type\":\"llama3\"}",
		"\"architectures\":[\"Phi3ForCausalLM\"],\"anything\":1",
		"\"model_type\":\"qwen3_moe\",\"decoder_sparse_step\":1,\"mlp_only_layers\":[]",
		"\"model_type\":\"nemotron\",\"hidden_act\":\"relu2\",\"norm_eps\":1e-5",
		"\"model_type\":\"mixtral\",\"num_key_value_heads\":2,\"num_experts\":4,\"num_local_experts\":4"};
	static const char *const other[] = {"\"model_type\":\"mixtral\"", /* 8 heads of keys */
	                                    "\"model_type\":\"olmoe\",\"num_experts\":4",
	                                    "\"model_type\":\"olmoe\",\"num_experts\":64,\"num_local_experts\":8",
	                                    "\"model_type\":\"olmoe\",\"num_experts_per_tok\":2.5",
	                                    "\"model_type\":\"olmoe\",\"n_shared_experts\":2",
	                                    "\"model_type\":\"olmoe\",\"num_nextn_predict_layers\":1",
	                                    "\"model_type\":\"qwen3_moe\",\"decoder_sparse_step\":2",
	                                    "\"model_type\":\"deepseek_v3\"", /* without kv_lora_rank */
	                                    "\"model_type\":\"deepseek_v3\"," LATENT ",\"moe_layer_freq\":2",
	                                    "\"model_type\":\"deepseek_v3\"," LATENT ",\"n_shared_experts\":-1",
	                                    "\"model_type\":\"deepseek_v3\"," LATENT ",\"first_k_dense_replace\":3",
	                                    "\"model_type\":\"deepseek_v3\"," LATENT ",\"first_k_dense_replace\":-1",
	                                    "\"model_type\":\"deepseek_v3\"," LATENT ",\"qk_nope_head_dim\":0.5",
	                                    "\"model_type\":\"deepseek_v2\"," LATENT, /* without num_experts_per_tok */
	                                    "\"model_type\":\"qwen2_moe\",\"num_key_value_heads\":4,"
	                                    "\"shared_expert_intermediate_size\":-1",
	                                    "\"model_type\":\"qwen3_moe\",\"mlp_only_layers\":[0]",
	                                    "\"model_type\":3",
	                                    "\"hidden_act\":\"gelu\"",
	                                    "\"num_local_experts\":8",
	                                    "\"num_experts\":128",
	                                    "\"n_routed_experts\":256",
	                                    "\"kv_lora_rank\":512",
	                                    "\"num_nextn_predict_layers\":1",
	                                    "\"architectures\":[\"GemmaForCausalLM\"]"};
	struct wlb_model m;
	struct wlb_error error;
	char text[1024];
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		snprintf(text, sizeof(text), "{" REQUIRED ",%s}", same[i]);
		if (read_shape(state, text, &m, &error) < 0)
			fail_msg("%s", error.message);
	}
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		snprintf(text, sizeof(text), "{" REQUIRED ",%s}", other[i]);
		assert_int_equal(read_shape(state, text, &m, &error), -1);
	}
	expect_refused(state, "{" REQUIRED ",\"num_local_experts\":8}", "num_local_experts is 8: only dense models");
}

static void test_experts(void **state)
{
	struct wlb_model m;
	struct wlb_error error;
	assert_int_equal(read_shape(state, "{" REQUIRED ",\"model_type\":\"qwen3_moe\"}", &m, &error), 0);
	assert_int_equal(m.num_experts, 128);
	assert_int_equal(m.num_experts_per_tok, 8);
	assert_int_equal(m.intermediate_size, 768);
	assert_int_equal(read_shape(state,
	                            "{" REQUIRED ",\"architectures\":[\"Qwen3MoeForCausalLM\"],\"num_experts\":16,"
	                            "\"num_experts_per_tok\":4,\"moe_intermediate_size\":32}",
	                            &m, &error),
	                 0);
	assert_int_equal(m.num_experts, 16);
	assert_int_equal(m.num_experts_per_tok, 4);
	assert_int_equal(m.intermediate_size, 32);
	assert_int_equal(
		read_shape(state, "{" REQUIRED ",\"model_type\":\"olmoe\",\"num_local_experts\":16}", &m, &error), 0);
	assert_int_equal(m.num_experts, 16);
	assert_int_equal(m.intermediate_size, 128);
	assert_int_equal(m.num_key_value_heads, 4);
	assert_int_equal(m.shared_intermediate_size + m.dense_layers + m.kv_lora_rank, 0);
}

/* Shared experts, first layers without experts, and keys and values that are made of few elements. */
static void test_latent_attention(void **state)
{
	struct wlb_model m;
	struct wlb_error error;
	assert_int_equal(
		read_shape(state,
	                   "{" REQUIRED ",\"model_type\":\"deepseek_v3\"," LATENT
	                   ",\"num_key_value_heads\":2,\"n_shared_experts\":3,\"moe_intermediate_size\":32,"
	                   "\"num_nextn_predict_layers\":1,\"quantization_config\":{\"quant_method\":\"fp8\"}}",
	                   &m, &error),
		0);
	assert_int_equal(m.num_experts, 256);
	assert_int_equal(m.intermediate_size, 32);
	assert_int_equal(m.shared_intermediate_size, 3 * 32);
	assert_int_equal(m.dense_layers, 1);
	assert_int_equal(m.dense_intermediate_size, 128);
	assert_int_equal(m.q_lora_rank, 1536);
	assert_int_equal(m.head_dim, 16 + 8);
	assert_int_equal(m.num_key_value_heads, 4);
	assert_int_equal(wlb_model_head_width(&m), (24 + 12) / 2);
	assert_int_equal(read_shape(state,
	                            "{" REQUIRED ",\"model_type\":\"deepseek_v2\"," LATENT
	                            ",\"q_lora_rank\":null,\"num_experts_per_tok\":6,\"n_shared_experts\":0}",
	                            &m, &error),
	                 0);
	assert_int_equal(m.q_lora_rank, 0);
	assert_int_equal(m.shared_intermediate_size, 0);
	assert_int_equal(read_shape(state,
	                            "{" REQUIRED ",\"model_type\":\"qwen2_moe\",\"num_key_value_heads\":4,"
	                            "\"shared_expert_intermediate_size\":48}",
	                            &m, &error),
	                 0);
	assert_int_equal(m.shared_intermediate_size, 48);
	assert_int_equal(
		read_shape(state, "{" REQUIRED ",\"model_type\":\"gpt_oss\",\"num_key_value_heads\":4}", &m, &error),
		0);
	assert_int_equal(wlb_model_layer_window(&m, 0), 128);
	assert_int_equal(wlb_model_layer_window(&m, 1), 0);
}

static void test_absurd_values(void **state)
{
	expect_refused(state, "[]", "the file holds an array: it must be an object");
	expect_refused(state, "7", "the file holds an integer");
	expect_refused(state, "", "line 1");
	expect_refused(state, "{\"hidden_size\":\n\n64,", "line 3");
	expect_refused(
		state,
		"{\"hidden_size\":64,\"intermediate_size\":128,\"num_hidden_layers\":2,\"num_attention_heads\":0,"
		"\"vocab_size\":1}",
		"num_attention_heads is 0");
	expect_refused(
		state,
		"{\"hidden_size\":65,\"intermediate_size\":128,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
		"\"vocab_size\":1}",
		"num_attention_heads is 4: it must be at least 1 and divide hidden_size, 65");
	expect_refused(
		state,
		"{\"hidden_size\":-64,\"intermediate_size\":128,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
		"\"vocab_size\":1}",
		"hidden_size is -64");
	expect_refused(
		state,
		"{\"hidden_size\":64,\"intermediate_size\":true,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
		"\"vocab_size\":1}",
		"intermediate_size is true: it must be a whole number");
}

static void test_deep_nesting(void **state)
{
	enum { DEPTH = 200000 };
	char *text = malloc(DEPTH + 1);
	assert_non_null(text);
	memset(text, '[', DEPTH);
	text[DEPTH] = '\0';
	expect_refused(state, text, "maximum parsing depth");
	free(text);
}

static void test_unreadable_files(void **state)
{
	struct wlb_model model;
	struct wlb_error error;
	assert_int_equal(wlb_model_config_read(fixture_path(state, "absent.json"), WLB_MODEL_TO_TRAIN, &model, &error),
	                 -1);
	assert_says(error.message, "absent.json");
	assert_int_equal(wlb_model_config_read(*state, WLB_MODEL_TO_TRAIN, &model, &error), -1);
	assert_says(error.message, "/config.json");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_defaults, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_llama_3, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_transformers_5, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_published_files, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_each_required_field, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_refused_fields, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_llama_3_2, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_defaults_of_families, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_windows_of_layers, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_gemma_2, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_gemma_3, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_gemma_refused, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_forms_of_values, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_scaled_positions, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_shapes, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_experts, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_latent_attention, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_absurd_values, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_deep_nesting, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_unreadable_files, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("model_config", tests, NULL, NULL);
}
