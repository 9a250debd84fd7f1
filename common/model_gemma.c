#include "common/model_gemma.h"

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
	return 0;
}
