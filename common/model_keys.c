#include "common/model_keys.h"

#include <stdio.h>
#include <string.h>

#include "common/model_field.h"

/* What a key may hold besides null. */
enum rule {
	ANY,    /* it is read elsewhere, or does not change what a model computes from its weights */
	NONE,   /* nothing: a kind of model that is not known here */
	OFF,    /* false */
	NUMBER, /* that number */
	GATE,   /* the gate's function: "silu" or "swish", its other name; in Gemma "gelu_pytorch_tanh" */
	GEMMA,  /* in Gemma it is read in model_gemma.c, or has no effect; in other families nothing */
	DENSE,  /* at most one expert */
};

/* Keys with the same rule. */
struct keys {
	enum rule rule;
	double number;
	int of_shape;   /* the rule holds for planning too: it is about matrices or their number */
	int of_experts; /* the rule does not hold where the family has experts, which model_experts.c reads */
	int of_gate;    /* nor where it has no gate: which activation there is changes no matrix */
	int of_latent;  /* nor where the family has latent attention, whose keys model_experts.c reads */
	const char *const *names;
};

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct keys config_keys[] = {
	/* Read in model_config.c and model_rope.c. */
	{.rule = ANY,
         .names = NAMES("model_type", "architectures", "hidden_size", "intermediate_size", "num_hidden_layers",
                        "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
                        "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings", "initializer_range",
                        "rope_theta", "partial_rotary_factor", "rope_scaling", "rope_parameters",
                        "original_max_position_embeddings", "no_rope_layers", "no_rope_layer_interval",
                        "sliding_window", "use_sliding_window", "max_window_layers", "layer_types")},
	{.rule = GATE, .of_shape = 1, .of_gate = 1, .names = NAMES("hidden_act", "hidden_activation")},
	{.rule = OFF,
         .names = NAMES("attention_bias", "mlp_bias", "qkv_bias", "lm_head_bias", "use_bias", "qk_norm", "use_qk_norm",
                        "parallel_attn", "use_parallel_residual", "rope_interleaved", "use_mrope",
                        "use_bidirectional_attention")},
	{.rule = NUMBER,
         .number = 0,
         .names = NAMES("attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop")},
	{.rule = NUMBER,
         .number = 1,
         .names = NAMES("rotary_pct", "embedding_multiplier", "residual_multiplier", "logits_scaling", "full_attn_mod",
                        "interpolate_factor")},
	{.rule = NONE,
         .names = NAMES("attention_chunk_size", "attention_multiplier", "clip_qkv", "quantization_config")},
	{.rule = GEMMA,
         .names = NAMES("attn_logit_softcapping", "final_logit_softcapping", "query_pre_attn_scalar",
                        "rope_local_base_freq", "sliding_window_pattern", "sliding_window_size",
                        "cache_implementation")},
	/* Other matrices: experts, latent attention, further heads, encoders. */
	{.rule = DENSE,
         .of_shape = 1,
         .of_experts = 1,
         .names = NAMES("num_local_experts", "num_experts", "num_experts_per_tok")},
	{.rule = NONE, .of_shape = 1, .of_experts = 1, .names = NAMES("moe_intermediate_size")},
	{.rule = DENSE, .of_shape = 1, .of_latent = 1, .names = NAMES("n_routed_experts", "n_shared_experts")},
	{.rule = NUMBER, .number = 0, .of_shape = 1, .of_latent = 1, .names = NAMES("num_nextn_predict_layers")},
	{.rule = NONE,
         .of_shape = 1,
         .of_latent = 1,
         .names = NAMES("q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")},
	{.rule = NONE, .of_shape = 1, .names = NAMES("text_config", "vision_config")},
	{.rule = OFF,
         .of_shape = 1,
         .names = NAMES("is_encoder_decoder", "add_cross_attention", "tie_encoder_decoder")},
	/* Where the file comes from, how it is stored, which tokens are special, and how text is generated. The
         * products of pretraining_tp are those of the whole matrices. */
	{.rule = ANY,
         .names = NAMES(
		 "pretraining_tp", "transformers_version", "torch_dtype", "dtype", "auto_map", "custom_pipelines",
		 "tokenizer_class", "task_specific_params", "finetuning_task", "problem_type", "id2label", "label2id",
		 "num_labels", "is_decoder", "is_llama_config", "unsloth_version", "unsloth_fixed",
		 "max_sequence_length", "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id",
		 "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id", "use_cache", "return_dict",
		 "return_dict_in_generate", "output_attentions", "output_hidden_states", "output_scores", "torchscript",
		 "use_bfloat16", "tf_legacy_loss", "chunk_size_feed_forward", "pruned_heads", "prefix", "max_length",
		 "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "num_return_sequences",
		 "diversity_penalty", "repetition_penalty", "length_penalty", "exponential_decay_length_penalty",
		 "temperature", "top_k", "top_p", "typical_p", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
		 "bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "remove_invalid_values")},
	{.names = NULL},
};

static int check_flag(const char *name, const json_t *value, struct wlb_error *error)
{
	if (!json_is_boolean(value))
		return wlb_fail(error, "%s is %s: it must be true or false", name, wlb_config_type_name(value));
	return json_is_true(value) ? wlb_fail(error, "%s is true: only false can be trained", name) : 0;
}

static int check_number(const char *name, const json_t *value, double only, struct wlb_error *error)
{
	char rule[64];
	if (json_is_number(value) && json_number_value(value) == only)
		return 0;
	snprintf(rule, sizeof(rule), "only %g can be trained", only);
	return wlb_config_refuse(name, value, rule, error);
}

static int check_silu(const char *name, const json_t *value, struct wlb_error *error)
{
	if (json_is_string(value) &&
	    (strcmp(json_string_value(value), "silu") == 0 || strcmp(json_string_value(value), "swish") == 0))
		return 0;
	return wlb_config_refuse(name, value, "only \"silu\" and \"swish\", which is the same, are known", error);
}

static int check_gelu(const char *name, const json_t *value, struct wlb_error *error)
{
	if (json_is_string(value) && strcmp(json_string_value(value), "gelu_pytorch_tanh") == 0)
		return 0;
	return wlb_config_refuse(name, value, "only \"gelu_pytorch_tanh\" is known in this family", error);
}

static int check_experts(const char *name, const json_t *value, struct wlb_error *error)
{
	if (json_is_integer(value) && json_integer_value(value) <= 1)
		return 0;
	return wlb_config_refuse(name, value, "only dense models are known, it must be at most 1", error);
}

static int check_value(const struct keys *keys, const struct wlb_family_row *family, const char *name,
                       const json_t *value, struct wlb_error *error)
{
	switch (keys->rule) {
	case ANY:
		return 0;
	case NONE:
		return wlb_config_refuse(name, value, "it must be null", error);
	case OFF:
		return check_flag(name, value, error);
	case NUMBER:
		return check_number(name, value, keys->number, error);
	case GATE:
		return family->gelu_gate ? check_gelu(name, value, error) : check_silu(name, value, error);
	case GEMMA:
		return family->scales_embedding ? 0 : wlb_config_refuse(name, value, "only Gemma has it", error);
	case DENSE:
		return check_experts(name, value, error);
	}
	return 0;
}

/* Whether keys are as the family has them, whatever their rule. */
static int is_of_family(const struct keys *keys, const struct wlb_family_row *family)
{
	return (keys->of_experts && family->experts) || (keys->of_gate && family->ungated) ||
	       (keys->of_latent && family->latent);
}

static int is_known(const char *name)
{
	for (const struct keys *keys = config_keys; keys->names != NULL; keys++)
		for (const char *const *known = keys->names; *known != NULL; known++)
			if (strcmp(*known, name) == 0)
				return 1;
	return 0;
}

int wlb_model_keys_check(const json_t *config, int of_shape, const struct wlb_family_row *family,
                         struct wlb_error *error)
{
	for (const struct keys *keys = config_keys; keys->names != NULL; keys++)
		for (const char *const *name = keys->names; *name != NULL; name++) {
			const json_t *value = wlb_config_field(config, *name);
			if (value != NULL && (!of_shape || keys->of_shape) && !is_of_family(keys, family) &&
			    check_value(keys, family, *name, value, error) < 0)
				return -1;
		}
	return 0;
}

/* Names that begin with "_" are Hugging Face's own notes. */
int wlb_model_keys_refuse_unknown(const json_t *config, struct wlb_error *error)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)config, name, value)
	{
		if (!json_is_null(value) && name[0] != '_' && !is_known(name))
			return wlb_config_refuse(
				name, value,
				"this key is not known, and may change what the model computes: remove "
				"it where it does not",
				error);
	}
	return 0;
}
