#include "common/model_gemma.h"

#include <string.h>

#include "common/model_field.h"

/* Reads a soft cap, which is `absent` where the file has no such key. */
static int read_cap(const json_t *config, const char *name, double absent, double *cap, struct wlb_error *error)
{
	*cap = json_object_get(config, name) == NULL ? absent : 0.0;
	if (wlb_config_number(config, name, WLB_CONFIG_OPTIONAL, cap, error) < 0)
		return -1;
	if (wlb_config_field(config, name) != NULL && *cap <= 0.0)
		return wlb_fail(error, "%s is %g: it must be above 0, or null", name, *cap);
	return 0;
}

static int is_sliding(const json_t *types, size_t layer)
{
	const char *name = json_string_value(json_array_get(types, layer));
	return name != NULL && strcmp(name, "sliding_attention") == 0;
}

/* Sets sliding_window_pattern from layer_types. Only lists are known of which the last of so many layers has full
 * attention; one without full attention is that of a pattern beyond the layers. */
static int read_layer_types(const json_t *types, struct wlb_model *m, struct wlb_error *error)
{
	size_t layers = (size_t)m->num_hidden_layers, first = 0;
	if (!json_is_array(types) || json_array_size(types) != layers)
		return wlb_config_refuse("layer_types", types, "it must have an entry a layer", error);
	while (first < layers && is_sliding(types, first))
		first++;
	m->sliding_window_pattern = (int64_t)first + 1;
	for (size_t l = 0; l < layers; l++)
		if (is_sliding(types, l) != wlb_model_layer_slides(m, (int64_t)l))
			return wlb_config_refuse(
				"layer_types", types,
				"only lists are known in which every so-manieth layer is \"full_attention\"", error);
	return 0;
}

/* Gemma 2 has every second layer with full attention; Gemma 3 every sixth, where the file does not say otherwise. */
static int read_sliding_layers(const json_t *config, int has_pattern, struct wlb_model *m, struct wlb_error *error)
{
	const json_t *types = wlb_config_field(config, "layer_types");
	m->sliding_window_pattern = has_pattern ? 6 : 2;
	if (has_pattern && wlb_config_count(config, "sliding_window_pattern", WLB_CONFIG_OPTIONAL,
	                                    &m->sliding_window_pattern, error) < 0)
		return -1;
	if (m->sliding_window_pattern < 1)
		return wlb_fail(error, "sliding_window_pattern is %lld: it must be at least 1",
		                (long long)m->sliding_window_pattern);
	return types == NULL ? 0 : read_layer_types(types, m, error);
}

int wlb_model_gemma_read(const json_t *config, struct wlb_model *m, struct wlb_error *error)
{
	const struct wlb_family_row *family = wlb_family(m->family);
	double logits = m->family == WLB_FAMILY_GEMMA2 ? 30.0 : 0.0,
	       scores = m->family == WLB_FAMILY_GEMMA2 ? 50.0 : 0.0;
	if (!family->scales_embedding)
		return 0;
	m->query_pre_attn_scalar = 256.0;
	m->rope_local_base_freq = family->local_rope ? 1e4 : 0.0;
	if (wlb_config_number(config, "query_pre_attn_scalar", WLB_CONFIG_OPTIONAL, &m->query_pre_attn_scalar, error) <
	            0 ||
	    (family->local_rope && wlb_config_number(config, "rope_local_base_freq", WLB_CONFIG_OPTIONAL,
	                                             &m->rope_local_base_freq, error) < 0) ||
	    read_cap(config, "attn_logit_softcapping", scores, &m->attn_logit_softcapping, error) < 0 ||
	    read_cap(config, "final_logit_softcapping", logits, &m->final_logit_softcapping, error) < 0)
		return -1;
	if (family->local_rope && m->rope_local_base_freq < 1.0)
		return wlb_fail(error, "rope_local_base_freq is %g: it must be at least 1", m->rope_local_base_freq);
	if (m->query_pre_attn_scalar <= 0.0)
		return wlb_fail(error, "query_pre_attn_scalar is %g: it must be above 0", m->query_pre_attn_scalar);
	return read_sliding_layers(config, family->local_rope, m, error);
}
