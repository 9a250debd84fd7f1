#include "common/model_config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"

enum { LARGEST_CONFIG_BYTES = 1 << 20 };

enum need { OPTIONAL, REQUIRED };

static const char *type_name(const json_t *value)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
		[JSON_INTEGER] = "an integer", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
		[JSON_FALSE] = "false",        [JSON_NULL] = "null"};
	return names[json_typeof(value)];
}

/* The field's value; NULL if it is absent or null, which Hugging Face treats alike. */
static const json_t *field(const json_t *config, const char *name)
{
	const json_t *value = json_object_get(config, name);
	return json_is_null(value) ? NULL : value;
}

static int read_count(const json_t *config, const char *name, enum need need, int64_t *out, struct wlb_error *error)
{
	const json_t *value = field(config, name);
	if (value == NULL && need == OPTIONAL)
		return 0;
	if (value == NULL)
		return wlb_fail(error, "%s is missing: it must be given", name);
	if (!json_is_integer(value))
		return wlb_fail(error, "%s is %s: it must be a whole number", name, type_name(value));
	*out = json_integer_value(value);
	return 0;
}

static int read_number(const json_t *config, const char *name, double *out, struct wlb_error *error)
{
	const json_t *value = field(config, name);
	if (value == NULL)
		return 0;
	if (!json_is_number(value))
		return wlb_fail(error, "%s is %s: it must be a number", name, type_name(value));
	*out = json_number_value(value);
	return 0;
}

static int read_flag(const json_t *config, const char *name, int *out, struct wlb_error *error)
{
	const json_t *value = field(config, name);
	if (value == NULL)
		return 0;
	if (!json_is_boolean(value))
		return wlb_fail(error, "%s is %s: it must be true or false", name, type_name(value));
	*out = json_is_true(value);
	return 0;
}

/* Fails because a value is none that can be used. Name and value are printed as JSON in ASCII: they may be of any key.
 */
static int refuse_value(const char *name, const json_t *value, const char *rule, struct wlb_error *error)
{
	const size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6);
	json_t *key = json_string(name);
	char *quoted = json_dumps(key, flags), *text = json_dumps(value, flags);
	if (quoted != NULL && text != NULL)
		wlb_fail(error, "%.*s is %.100s: %s", (int)strnlen(quoted + 1, 101) - 1, quoted + 1, text, rule);
	else
		wlb_fail(error, "out of memory for the configuration of a model");
	json_decref(key);
	free(quoted);
	free(text);
	return -1;
}

/* What a key of config.json may hold besides null, which Hugging Face treats as absent. */
enum rule {
	ANY,         /* it is read elsewhere, or does not change what a model computes from its weights */
	NONE,        /* nothing: a kind of model that is not known here */
	OFF,         /* false */
	NUMBER,      /* that number */
	TEXT,        /* that text */
	FULL,        /* a list of "full_attention" alone */
	DENSE,       /* at most one expert */
	ROPE,        /* an object by the table of rotary positions */
	ARCHITECTURE /* a list of one architecture that can be used */
};

/* Keys with the same rule. */
struct keys {
	enum rule rule;
	double number;
	const char *text;
	int of_shape; /* the rule holds for planning too: it is about matrices or their number */
	const char *const *names;
};

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct keys rope_keys[] = {
	{.rule = TEXT, .text = "default", .names = NAMES("rope_type", "type")},
	/* The default type does not use the original length. */
	{.rule = ANY, .names = NAMES("rope_theta", "original_max_position_embeddings")},
	{.rule = NUMBER, .number = 1, .names = NAMES("partial_rotary_factor", "factor", "attention_factor")},
	{.names = NULL},
};

static const struct keys config_keys[] = {
	{.rule = ARCHITECTURE, .of_shape = 1, .names = NAMES("architectures")},
	/* Read below, or model_type. */
	{.rule = ANY,
         .names = NAMES("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                        "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings", "rope_theta",
                        "rms_norm_eps", "tie_word_embeddings", "model_type")},
	{.rule = ROPE, .names = NAMES("rope_scaling", "rope_parameters")},
	{.rule = TEXT, .text = "silu", .of_shape = 1, .names = NAMES("hidden_act", "hidden_activation")},
	{.rule = OFF,
         .names = NAMES("attention_bias", "mlp_bias", "qkv_bias", "use_bias", "qk_norm", "use_qk_norm", "parallel_attn",
                        "use_parallel_residual", "use_sliding_window", "rope_interleaved", "use_mrope")},
	{.rule = NUMBER,
         .number = 0,
         .names = NAMES("attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop")},
	{.rule = NUMBER,
         .number = 1,
         .names = NAMES("partial_rotary_factor", "rotary_pct", "embedding_multiplier", "residual_multiplier",
                        "logits_scaling", "pretraining_tp")},
	{.rule = FULL, .names = NAMES("layer_types")},
	{.rule = NONE,
         .names = NAMES("sliding_window", "attention_chunk_size", "attn_logit_softcapping", "final_logit_softcapping",
                        "query_pre_attn_scalar", "attention_multiplier", "clip_qkv", "quantization_config")},
	/* Other matrices: experts, latent attention, further heads, encoders. */
	{.rule = DENSE,
         .of_shape = 1,
         .names = NAMES("num_local_experts", "num_experts", "n_routed_experts", "num_experts_per_tok",
                        "n_shared_experts")},
	{.rule = NUMBER, .number = 0, .of_shape = 1, .names = NAMES("num_nextn_predict_layers")},
	{.rule = NONE,
         .of_shape = 1,
         .names = NAMES("moe_intermediate_size", "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim",
                        "v_head_dim")},
	{.rule = OFF,
         .of_shape = 1,
         .names = NAMES("is_encoder_decoder", "add_cross_attention", "tie_encoder_decoder")},
	/* Initial weights are those of --init-method-std; a window that is refused has no layers. The others say where
         * the file comes from, how it is stored, which tokens are special, and how text is generated. */
	{.rule = ANY,
         .names = NAMES("initializer_range", "max_window_layers", "transformers_version", "torch_dtype", "dtype",
                        "auto_map", "custom_pipelines", "tokenizer_class", "task_specific_params", "finetuning_task",
                        "problem_type", "id2label", "label2id", "num_labels", "is_decoder", "is_llama_config",
                        "unsloth_version", "unsloth_fixed", "max_sequence_length", "bos_token_id", "eos_token_id",
                        "pad_token_id", "unk_token_id", "sep_token_id", "decoder_start_token_id", "forced_bos_token_id",
                        "forced_eos_token_id", "use_cache", "return_dict", "return_dict_in_generate",
                        "output_attentions", "output_hidden_states", "output_scores", "torchscript", "use_bfloat16",
                        "tf_legacy_loss", "chunk_size_feed_forward", "pruned_heads", "prefix", "max_length",
                        "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
                        "num_return_sequences", "diversity_penalty", "repetition_penalty", "length_penalty",
                        "exponential_decay_length_penalty", "temperature", "top_k", "top_p", "typical_p",
                        "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids", "suppress_tokens",
                        "begin_suppress_tokens", "remove_invalid_values")},
	{.names = NULL},
};

static int check_keys(const json_t *object, const struct keys *table, enum wlb_model_use use, struct wlb_error *error);

static int check_rope(const char *name, const json_t *value, struct wlb_error *error)
{
	if (!json_is_object(value))
		return wlb_fail(error, "%s is %s: it must be an object", name, type_name(value));
	return check_keys(value, rope_keys, WLB_MODEL_TO_TRAIN, error) < 0 ? wlb_fail_in(error, "%s", name) : 0;
}

static int check_layer_types(const char *name, const json_t *value, struct wlb_error *error)
{
	size_t i;
	const json_t *type;
	int is_full = json_is_array(value);
	json_array_foreach(value, i, type)
	{
		is_full = is_full && json_is_string(type) && strcmp(json_string_value(type), "full_attention") == 0;
	}
	return is_full ? 0 : refuse_value(name, value, "only \"full_attention\" of all layers can be trained", error);
}

/* Models whose layers have the matrices of Llama. */
static const struct family {
	const char *type;
	const char *architecture;
} families[] = {
	{"llama", "LlamaForCausalLM"}, /* the only one that is trained */
	{"mistral", "MistralForCausalLM"},
	{"qwen2", "Qwen2ForCausalLM"},
	{"qwen3", "Qwen3ForCausalLM"},
};

static int family_count(enum wlb_model_use use)
{
	return use == WLB_MODEL_TO_TRAIN ? 1 : (int)(sizeof(families) / sizeof(families[0]));
}

static int check_architecture(const char *name, const json_t *value, enum wlb_model_use use, struct wlb_error *error)
{
	const char *only = json_string_value(json_array_get(value, 0));
	int is_one = json_array_size(value) == 1 && only != NULL, i = 0;
	while (is_one && i < family_count(use) && strcmp(only, families[i].architecture) != 0)
		i++;
	if ((json_is_array(value) && json_array_size(value) == 0) || (is_one && i < family_count(use)))
		return 0;
	return refuse_value(name, value,
	                    use == WLB_MODEL_TO_TRAIN ? "only [\"LlamaForCausalLM\"] can be trained"
	                                              : "only those of llama, mistral, qwen2 and qwen3 can be planned",
	                    error);
}

static int check_model_type(const json_t *config, enum wlb_model_use use, struct wlb_error *error)
{
	const json_t *value = field(config, "model_type");
	int i = 0;
	if (value == NULL)
		return 0;
	if (!json_is_string(value))
		return wlb_fail(error, "model_type is %s: it must be a text such as \"llama\"", type_name(value));
	while (i < family_count(use) && strcmp(json_string_value(value), families[i].type) != 0)
		i++;
	if (i < family_count(use))
		return 0;
	return refuse_value("model_type", value,
	                    use == WLB_MODEL_TO_TRAIN ? "only \"llama\" can be trained"
	                                              : "only llama, mistral, qwen2 and qwen3 can be planned",
	                    error);
}

static int check_flag(const char *name, const json_t *value, struct wlb_error *error)
{
	if (!json_is_boolean(value))
		return wlb_fail(error, "%s is %s: it must be true or false", name, type_name(value));
	return json_is_true(value) ? wlb_fail(error, "%s is true: only false can be trained", name) : 0;
}

static int check_number(const char *name, const json_t *value, double only, struct wlb_error *error)
{
	char rule[64];
	if (json_is_number(value) && json_number_value(value) == only)
		return 0;
	snprintf(rule, sizeof(rule), "only %g can be trained", only);
	return refuse_value(name, value, rule, error);
}

static int check_text(const char *name, const json_t *value, const char *only, struct wlb_error *error)
{
	char rule[64];
	if (json_is_string(value) && strcmp(json_string_value(value), only) == 0)
		return 0;
	snprintf(rule, sizeof(rule), "only \"%s\" can be trained", only);
	return refuse_value(name, value, rule, error);
}

static int check_experts(const char *name, const json_t *value, struct wlb_error *error)
{
	if (json_is_integer(value) && json_integer_value(value) <= 1)
		return 0;
	return refuse_value(name, value, "only dense models are known, it must be at most 1", error);
}

static int check_value(const struct keys *keys, const char *name, const json_t *value, enum wlb_model_use use,
                       struct wlb_error *error)
{
	switch (keys->rule) {
	case ANY:
		return 0;
	case NONE:
		return refuse_value(name, value, "it must be null", error);
	case OFF:
		return check_flag(name, value, error);
	case NUMBER:
		return check_number(name, value, keys->number, error);
	case TEXT:
		return check_text(name, value, keys->text, error);
	case FULL:
		return check_layer_types(name, value, error);
	case DENSE:
		return check_experts(name, value, error);
	case ROPE:
		return check_rope(name, value, error);
	case ARCHITECTURE:
		return check_architecture(name, value, use, error);
	}
	return 0;
}

static int is_in(const struct keys *table, const char *name)
{
	for (; table->names != NULL; table++)
		for (const char *const *known = table->names; *known != NULL; known++)
			if (strcmp(*known, name) == 0)
				return 1;
	return 0;
}

/* Refuses a key that is in no table: a new kind of model would train as Llama without a word. Names that begin with "_"
 * are Hugging Face's own notes. */
static int refuse_unknown(const json_t *object, const struct keys *table, struct wlb_error *error)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)object, name, value)
	{
		if (!json_is_null(value) && name[0] != '_' && !is_in(table, name))
			return refuse_value(name, value,
			                    "this key is not known, and may change what the model computes: remove it "
			                    "where it does not",
			                    error);
	}
	return 0;
}

/* Refuses, in the order of the table, what cannot be trained, and for planning what changes the shape. */
static int check_keys(const json_t *object, const struct keys *table, enum wlb_model_use use, struct wlb_error *error)
{
	for (const struct keys *keys = table; keys->names != NULL; keys++)
		for (const char *const *name = keys->names; *name != NULL; name++) {
			const json_t *value = field(object, *name);
			if (value != NULL && (use == WLB_MODEL_TO_TRAIN || keys->of_shape) &&
			    check_value(keys, *name, value, use, error) < 0)
				return -1;
		}
	return use == WLB_MODEL_TO_TRAIN ? refuse_unknown(object, table, error) : 0;
}

/* rope_theta is a field of its own, or since Transformers 5 of rope_parameters, whose other name is rope_scaling. */
static int read_rope(const json_t *config, double *theta, struct wlb_error *error)
{
	static const char *const names[] = {"rope_parameters", "rope_scaling"};
	int is_known = field(config, "rope_theta") != NULL;
	if (read_number(config, "rope_theta", theta, error) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *parameters = field(config, names[i]);
		double own = *theta;
		if (parameters == NULL || field(parameters, "rope_theta") == NULL)
			continue;
		if (read_number(parameters, "rope_theta", theta, error) < 0)
			return wlb_fail_in(error, "%s", names[i]);
		if (is_known && *theta != own)
			return wlb_fail(error, "rope_theta is %g, and %g in %s: they must be equal", own, *theta,
			                names[i]);
		is_known = 1;
	}
	return 0;
}

/* Reads the fields that LlamaConfig derives from the number of heads. */
static int read_heads(const json_t *config, struct wlb_model *m, struct wlb_error *error)
{
	m->num_key_value_heads = m->num_attention_heads;
	if (read_count(config, "num_key_value_heads", OPTIONAL, &m->num_key_value_heads, error) < 0)
		return -1;
	if (field(config, "head_dim") != NULL)
		return read_count(config, "head_dim", REQUIRED, &m->head_dim, error);
	if (m->num_attention_heads < 1 || m->hidden_size % m->num_attention_heads != 0)
		return wlb_fail(
			error,
			"num_attention_heads is %lld: it must be at least 1 and divide hidden_size, %lld, where "
			"head_dim is not given",
			(long long)m->num_attention_heads, (long long)m->hidden_size);
	m->head_dim = m->hidden_size / m->num_attention_heads;
	return 0;
}

static int read_model(const json_t *config, enum wlb_model_use use, struct wlb_model *m, struct wlb_error *error)
{
	*m = (struct wlb_model){.max_position_embeddings = 2048, .rope_theta = 10000.0, .rms_norm_eps = 1e-6};
	if (!json_is_object(config))
		return wlb_fail(error, "the file holds %s: it must be an object", type_name(config));
	if (check_model_type(config, use, error) < 0 ||
	    read_count(config, "hidden_size", REQUIRED, &m->hidden_size, error) < 0 ||
	    read_count(config, "intermediate_size", REQUIRED, &m->intermediate_size, error) < 0 ||
	    read_count(config, "num_hidden_layers", REQUIRED, &m->num_hidden_layers, error) < 0 ||
	    read_count(config, "num_attention_heads", REQUIRED, &m->num_attention_heads, error) < 0 ||
	    read_count(config, "vocab_size", REQUIRED, &m->vocab_size, error) < 0 ||
	    read_count(config, "max_position_embeddings", OPTIONAL, &m->max_position_embeddings, error) < 0 ||
	    read_heads(config, m, error) < 0 || check_keys(config, config_keys, use, error) < 0 ||
	    (use == WLB_MODEL_TO_TRAIN && read_rope(config, &m->rope_theta, error) < 0) ||
	    read_number(config, "rms_norm_eps", &m->rms_norm_eps, error) < 0 ||
	    read_flag(config, "tie_word_embeddings", &m->tie_word_embeddings, error) < 0)
		return -1;
	return wlb_model_check(m, error);
}

/* Parses the text; the message names the line and column of an error. */
static int read_text(const char *text, size_t length, enum wlb_model_use use, struct wlb_model *m,
                     struct wlb_error *error)
{
	json_error_t place;
	json_t *config = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &place);
	if (config == NULL)
		return wlb_fail(error, "line %d: %s: the file must be JSON", place.line, place.text);
	int rc = read_model(config, use, m, error);
	json_decref(config);
	return rc;
}

int wlb_model_config_read(const char *path, enum wlb_model_use use, struct wlb_model *model, struct wlb_error *error)
{
	char *text;
	size_t length;
	if (wlb_file_read(path, LARGEST_CONFIG_BYTES, &text, &length, error) < 0)
		return -1;
	int rc = read_text(text, length, use, model, error);
	free(text);
	return rc < 0 ? wlb_fail_in(error, "%s", path) : 0;
}
