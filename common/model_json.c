#include "common/model_json.h"

#include <stddef.h>
#include <string.h>

#include "common/layer_types.h"

/* Where a number is in a struct, and its name in JSON. */
struct place {
	const char *name;
	size_t offset;
};

static const struct place scaling_numbers[] = {
	{"factor", offsetof(struct wlb_rope_scaling, factor)},
	{"original_max_position_embeddings", offsetof(struct wlb_rope_scaling, original_max_position_embeddings)},
	{"low_freq_factor", offsetof(struct wlb_rope_scaling, low_freq_factor)},
	{"high_freq_factor", offsetof(struct wlb_rope_scaling, high_freq_factor)},
	{"beta_fast", offsetof(struct wlb_rope_scaling, beta_fast)},
	{"beta_slow", offsetof(struct wlb_rope_scaling, beta_slow)},
	{"attention_factor", offsetof(struct wlb_rope_scaling, attention_factor)},
};

enum { SCALING_NUMBERS = sizeof(scaling_numbers) / sizeof(scaling_numbers[0]) };

static const struct place counts[] = {
	{"rotary_dim", offsetof(struct wlb_model, rotary_dim)},
	{"no_rope_layer_interval", offsetof(struct wlb_model, no_rope_layer_interval)},
	{"sliding_window", offsetof(struct wlb_model, sliding_window)},
};

static const struct place numbers[] = {
	{"query_pre_attn_scalar", offsetof(struct wlb_model, query_pre_attn_scalar)},
	{"attn_logit_softcapping", offsetof(struct wlb_model, attn_logit_softcapping)},
	{"final_logit_softcapping", offsetof(struct wlb_model, final_logit_softcapping)},
	{"rope_local_base_freq", offsetof(struct wlb_model, rope_local_base_freq)},
};

enum {
	COUNTS = sizeof(counts) / sizeof(counts[0]),
	NUMBERS = sizeof(numbers) / sizeof(numbers[0]),
};

static json_t *scaling_json(const struct wlb_rope_scaling *s)
{
	json_t *json = json_pack("{s:s, s:b}", "rope_type", wlb_rope_type_name(s->type), "truncate", s->truncate);
	for (size_t i = 0; i < SCALING_NUMBERS; i++) {
		double number;
		memcpy(&number, (const char *)s + scaling_numbers[i].offset, sizeof(number));
		json_object_set_new(json, scaling_numbers[i].name, json_real(number));
	}
	return json;
}

json_t *wlb_model_json(const struct wlb_model *m)
{
	json_t *json =
		json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b}", "model_type",
	                  wlb_family(m->family)->model_type, "hidden_size", (json_int_t)m->hidden_size,
	                  "intermediate_size", (json_int_t)m->intermediate_size, "num_hidden_layers",
	                  (json_int_t)m->num_hidden_layers, "num_attention_heads", (json_int_t)m->num_attention_heads,
	                  "num_key_value_heads", (json_int_t)m->num_key_value_heads, "head_dim",
	                  (json_int_t)m->head_dim, "vocab_size", (json_int_t)m->vocab_size, "max_position_embeddings",
	                  (json_int_t)m->max_position_embeddings, "rope_theta", m->rope_theta, "rms_norm_eps",
	                  m->rms_norm_eps, "tie_word_embeddings", m->tie_word_embeddings);
	for (size_t i = 0; i < COUNTS; i++) {
		int64_t count;
		memcpy(&count, (const char *)m + counts[i].offset, sizeof(count));
		if (count > 0)
			json_object_set_new(json, counts[i].name, json_integer(count));
	}
	if (m->sliding_window > 0)
		json_object_set_new(json, "layer_types", wlb_layer_types_json(m));
	for (size_t i = 0; i < NUMBERS; i++) {
		double number;
		memcpy(&number, (const char *)m + numbers[i].offset, sizeof(number));
		if (number > 0.0)
			json_object_set_new(json, numbers[i].name, json_real(number));
	}
	if (m->rope_scaling.type != WLB_ROPE_DEFAULT)
		json_object_set_new(json, "rope_scaling", scaling_json(&m->rope_scaling));
	return json;
}

static int parse_scaling(json_t *json, struct wlb_rope_scaling *s, struct wlb_error *error)
{
	json_error_t json_error;
	const char *type;
	if (json_unpack_ex(json, &json_error, 0, "{s:s, s:b}", "rope_type", &type, "truncate", &s->truncate) < 0)
		return wlb_fail(error, "rope_scaling: %s", json_error.text);
	while (s->type < WLB_ROPE_TYPES && strcmp(wlb_rope_type_name(s->type), type) != 0)
		s->type++;
	if (s->type == WLB_ROPE_TYPES)
		return wlb_fail(error, "rope_scaling: rope_type is none that is known");
	for (size_t i = 0; i < SCALING_NUMBERS; i++) {
		const json_t *number = json_object_get(json, scaling_numbers[i].name);
		if (!json_is_number(number))
			return wlb_fail(error, "rope_scaling: %s: it must be a number", scaling_numbers[i].name);
		double value = json_number_value(number);
		memcpy((char *)s + scaling_numbers[i].offset, &value, sizeof(value));
	}
	return 0;
}

static int parse_family(const char *type, enum wlb_family *family, struct wlb_error *error)
{
	*family = WLB_FAMILY_LLAMA;
	while (type != NULL && *family < WLB_FAMILIES && strcmp(wlb_family(*family)->model_type, type) != 0)
		(*family)++;
	return *family < WLB_FAMILIES ? 0 : wlb_fail(error, "model_type is none that is known");
}

static int parse_counts(const json_t *json, struct wlb_model *m, struct wlb_error *error)
{
	for (size_t i = 0; i < COUNTS; i++) {
		const json_t *count = json_object_get(json, counts[i].name);
		int64_t value = json_integer_value(count);
		if (count != NULL && !json_is_integer(count))
			return wlb_fail(error, "%s: it must be a whole number", counts[i].name);
		memcpy((char *)m + counts[i].offset, &value, sizeof(value));
	}
	for (size_t i = 0; i < NUMBERS; i++) {
		const json_t *number = json_object_get(json, numbers[i].name);
		double value = json_number_value(number);
		if (number != NULL && !json_is_number(number))
			return wlb_fail(error, "%s: it must be a number", numbers[i].name);
		memcpy((char *)m + numbers[i].offset, &value, sizeof(value));
	}
	return 0;
}

/* Versions whose sequences were not longer than the window did not record which layers have it. */
static int parse_window(const json_t *types, struct wlb_model *m, struct wlb_error *error)
{
	int all_have_it = m->family == WLB_FAMILY_MISTRAL || m->family == WLB_FAMILY_PHI3;
	if (m->sliding_window == 0 || (types == NULL && all_have_it))
		return 0;
	if (types == NULL)
		return wlb_fail(error, "layer_types is missing: it must say which layers have the sliding_window");
	return wlb_layer_types_parse(types, m, error);
}

int wlb_model_json_parse(json_t *json, struct wlb_model *m, struct wlb_error *error)
{
	json_error_t json_error;
	json_int_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, positions;
	const char *type = NULL;
	json_t *scaling = NULL;
	*m = (struct wlb_model){0};
	if (json_unpack_ex(json, &json_error, 0, "{s?s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:F, s:F, s:b, s?o}",
	                   "model_type", &type, "hidden_size", &hidden, "intermediate_size", &intermediate,
	                   "num_hidden_layers", &layers, "num_attention_heads", &heads, "num_key_value_heads",
	                   &kv_heads, "head_dim", &head_dim, "vocab_size", &vocab, "max_position_embeddings",
	                   &positions, "rope_theta", &m->rope_theta, "rms_norm_eps", &m->rms_norm_eps,
	                   "tie_word_embeddings", &m->tie_word_embeddings, "rope_scaling", &scaling) < 0)
		return wlb_fail(error, "%s", json_error.text);
	m->hidden_size = hidden;
	m->intermediate_size = intermediate;
	m->num_hidden_layers = layers;
	m->num_attention_heads = heads;
	m->num_key_value_heads = kv_heads;
	m->head_dim = head_dim;
	m->vocab_size = vocab;
	m->max_position_embeddings = positions;
	if (parse_family(type, &m->family, error) < 0 || parse_counts(json, m, error) < 0 ||
	    (scaling != NULL && parse_scaling(scaling, &m->rope_scaling, error) < 0) || wlb_model_check(m, error) < 0)
		return -1;
	return parse_window(json_object_get(json, "layer_types"), m, error);
}
