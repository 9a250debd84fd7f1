#include "worker/checkpoint/cli/made_config.h"

#include <math.h>

#include "common/layer_types.h"
#include "common/model_json.h"

/* A class of Transformers may refuse 16.0 for a whole number. */
static json_t *number_json(double number)
{
	return number == floor(number) && fabs(number) < 9e15 ? json_integer((json_int_t)number) : json_real(number);
}

static json_t *scaling_json(const struct wlb_rope_scaling *s)
{
	json_t *json = json_pack("{s:s, s:f}", "rope_type", wlb_rope_type_name(s->type), "factor", s->factor);
	if (s->type == WLB_ROPE_LLAMA3 || s->type == WLB_ROPE_YARN)
		json_object_set_new(json, "original_max_position_embeddings",
		                    number_json(s->original_max_position_embeddings));
	if (s->type == WLB_ROPE_LLAMA3) {
		json_object_set_new(json, "low_freq_factor", json_real(s->low_freq_factor));
		json_object_set_new(json, "high_freq_factor", json_real(s->high_freq_factor));
	}
	if (s->type == WLB_ROPE_YARN) {
		json_object_set_new(json, "beta_fast", json_real(s->beta_fast));
		json_object_set_new(json, "beta_slow", json_real(s->beta_slow));
		json_object_set_new(json, "attention_factor", json_real(s->attention_factor));
		json_object_set_new(json, "truncate", json_boolean(s->truncate));
	}
	return json;
}

/* Returns a factor of which readers, which cut head_dim * factor to a whole number, make rotary_dim. */
static double rotary_factor(const struct wlb_model *m)
{
	double width = (double)m->head_dim, factor = (double)m->rotary_dim / width;
	return (int64_t)(width * factor) < m->rotary_dim ? nextafter(factor, 1.0) : factor;
}

static json_t *rotating_layers_json(const struct wlb_model *m)
{
	json_t *list = json_array();
	for (int64_t layer = 0; layer < m->num_hidden_layers; layer++)
		json_array_append_new(list, json_integer(wlb_model_layer_rotates(m, layer)));
	return list;
}

/* A cap that is absent is not the same as null in Gemma 2. */
static json_t *cap_json(double cap)
{
	return cap > 0.0 ? json_real(cap) : json_null();
}

static int set_gemma(json_t *json, const struct wlb_model *m)
{
	int failed = json_object_set_new(json, "hidden_activation", json_string("gelu_pytorch_tanh"));
	failed |= json_object_set_new(json, "query_pre_attn_scalar", number_json(m->query_pre_attn_scalar));
	failed |= json_object_set_new(json, "attn_logit_softcapping", cap_json(m->attn_logit_softcapping));
	failed |= json_object_set_new(json, "final_logit_softcapping", cap_json(m->final_logit_softcapping));
	failed |= json_object_set_new(json, "layer_types", wlb_layer_types_json(m));
	return failed;
}

json_t *wlb_made_config(const struct wlb_model *m)
{
	json_t *json = wlb_model_json(m);
	int failed = json_object_set_new(json, "architectures", json_pack("[s]", wlb_family(m->family)->architecture));
	if (wlb_family(m->family)->gelu_gate)
		failed |= set_gemma(json, m);
	else
		failed |= json_object_set_new(json, "hidden_act", json_string("silu"));
	failed |= json_object_set_new(json, "bos_token_id", json_null());
	failed |= json_object_set_new(json, "eos_token_id", json_null());
	failed |= json_object_set_new(json, "pad_token_id", json_null());
	failed |= json_object_set_new(json, "sliding_window",
	                              m->sliding_window > 0 ? json_integer(m->sliding_window) : json_null());
	if (m->sliding_window > 0)
		failed |= json_object_set_new(json, "use_sliding_window", json_true());
	if (m->rope_scaling.type != WLB_ROPE_DEFAULT)
		failed |= json_object_set_new(json, "rope_scaling", scaling_json(&m->rope_scaling));
	if (m->rotary_dim > 0)
		failed |= json_object_set_new(json, "partial_rotary_factor", json_real(rotary_factor(m)));
	json_object_del(json, "rotary_dim"); /* a name of checkpoints alone */
	if (m->family == WLB_FAMILY_SMOLLM3)
		failed |= json_object_set_new(json, "no_rope_layers", rotating_layers_json(m));
	if (!failed)
		return json;
	json_decref(json);
	return NULL;
}
