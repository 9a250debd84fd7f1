#include "common/model_config.h"

#include <jansson.h>
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

/* Checks a text that may be absent and can have only one value. */
static int require_text(const json_t *config, const char *name, const char *only, struct wlb_error *error)
{
	const json_t *value = field(config, name);
	if (value == NULL)
		return 0;
	if (!json_is_string(value))
		return wlb_fail(error, "%s is %s: it must be \"%s\"", name, type_name(value), only);
	if (strcmp(json_string_value(value), only) != 0)
		return wlb_fail(error, "%s is \"%.100s\": only \"%s\" can be trained", name, json_string_value(value),
		                only);
	return 0;
}

/* Experts are named in several ways; a dense model has none, or one. */
static int refuse_experts(const json_t *config, struct wlb_error *error)
{
	static const char *const names[] = {"num_local_experts", "num_experts", "n_routed_experts"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int64_t experts = 0;
		if (read_count(config, names[i], OPTIONAL, &experts, error) < 0)
			return -1;
		if (experts > 1)
			return wlb_fail(error, "%s is %lld: only dense models are known, it must be at most 1",
			                names[i], (long long)experts);
	}
	return 0;
}

static int require_false(const json_t *config, const char *name, struct wlb_error *error)
{
	int flag = 0;
	if (read_flag(config, name, &flag, error) < 0)
		return -1;
	return flag ? wlb_fail(error, "%s is true: the model has no biases, it must be false", name) : 0;
}

/* rope_theta is a field of its own, or of rope_parameters since Transformers 5. Scaled positions are refused. */
static int read_rope(const json_t *config, double *theta, struct wlb_error *error)
{
	if (read_number(config, "rope_theta", theta, error) < 0)
		return -1;
	if (field(config, "rope_scaling") != NULL)
		return wlb_fail(error, "rope_scaling is %s: scaled positions cannot be trained, it must be null",
		                type_name(field(config, "rope_scaling")));
	const json_t *parameters = field(config, "rope_parameters");
	if (parameters == NULL)
		return 0;
	if (!json_is_object(parameters))
		return wlb_fail(error, "rope_parameters is %s: it must be an object", type_name(parameters));
	if (require_text(parameters, "rope_type", "default", error) < 0 ||
	    read_number(parameters, "rope_theta", theta, error) < 0)
		return wlb_fail_in(error, "rope_parameters");
	return 0;
}

static int refuse_unsupported(const json_t *config, struct wlb_error *error)
{
	double dropout = 0;
	if (require_text(config, "model_type", "llama", error) < 0 ||
	    require_text(config, "hidden_act", "silu", error) < 0 ||
	    require_false(config, "attention_bias", error) < 0 || require_false(config, "mlp_bias", error) < 0 ||
	    read_number(config, "attention_dropout", &dropout, error) < 0)
		return -1;
	if (dropout != 0)
		return wlb_fail(error, "attention_dropout is %g: attention is trained without dropout, it must be 0",
		                dropout);
	return 0;
}

/* Refuses models whose layers have other matrices than those of Llama. */
static int refuse_other_shapes(const json_t *config, struct wlb_error *error)
{
	static const char *const types[] = {"llama", "mistral", "qwen2", "qwen3"};
	const json_t *value = field(config, "model_type");
	int known = value == NULL;
	if (value != NULL && !json_is_string(value))
		return wlb_fail(error, "model_type is %s: it must be a text such as \"llama\"", type_name(value));
	for (size_t i = 0; !known && i < sizeof(types) / sizeof(types[0]); i++)
		known = strcmp(json_string_value(value), types[i]) == 0;
	if (!known)
		return wlb_fail(error, "model_type is \"%.100s\": only llama, mistral, qwen2 and qwen3 can be planned",
		                json_string_value(value));
	return require_text(config, "hidden_act", "silu", error);
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
	int trained = use == WLB_MODEL_TO_TRAIN;
	if (refuse_experts(config, error) < 0 ||
	    (trained ? refuse_unsupported(config, error) : refuse_other_shapes(config, error)) < 0 ||
	    read_count(config, "hidden_size", REQUIRED, &m->hidden_size, error) < 0 ||
	    read_count(config, "intermediate_size", REQUIRED, &m->intermediate_size, error) < 0 ||
	    read_count(config, "num_hidden_layers", REQUIRED, &m->num_hidden_layers, error) < 0 ||
	    read_count(config, "num_attention_heads", REQUIRED, &m->num_attention_heads, error) < 0 ||
	    read_count(config, "vocab_size", REQUIRED, &m->vocab_size, error) < 0 ||
	    read_count(config, "max_position_embeddings", OPTIONAL, &m->max_position_embeddings, error) < 0 ||
	    read_heads(config, m, error) < 0 || (trained && read_rope(config, &m->rope_theta, error) < 0) ||
	    read_number(config, "rms_norm_eps", &m->rms_norm_eps, error) < 0 ||
	    read_flag(config, "tie_word_embeddings", &m->tie_word_embeddings, error) < 0)
		return -1;
	return wlb_model_check(m, error);
}

/* Parses the text; the message names the line and column of an error. */
static int read_text(const char *text, size_t length, enum wlb_model_use use, struct wlb_model *m,
                     struct wlb_error *error)
{
	json_error_t at;
	json_t *config = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &at);
	if (config == NULL)
		return wlb_fail(error, "line %d: %s: the file must be JSON", at.line, at.text);
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
