/* Checks the shape of a model and counts its parameters. */
#include "libwlb/wlb.h"

#include <math.h>

/* Checks that a field is in [1, limit]. The limits prevent overflow of products of two or three fields. */
static int check_count(const char *field, int64_t value, int64_t limit, struct wlb_error *error)
{
	if (value >= 1 && value <= limit)
		return 0;
	return wlb_fail(error, "%s is %lld: it must be between 1 and %lld", field, (long long)value, (long long)limit);
}

int wlb_model_check(const struct wlb_model *m, struct wlb_error *error)
{
	if (check_count("hidden_size", m->hidden_size, 1 << 20, error) < 0 ||
	    check_count("intermediate_size", m->intermediate_size, 1 << 22, error) < 0 ||
	    check_count("num_hidden_layers", m->num_hidden_layers, 1 << 12, error) < 0 ||
	    check_count("num_attention_heads", m->num_attention_heads, 1 << 12, error) < 0 ||
	    check_count("num_key_value_heads", m->num_key_value_heads, 1 << 12, error) < 0 ||
	    check_count("head_dim", m->head_dim, 1 << 12, error) < 0 ||
	    check_count("vocab_size", m->vocab_size, 1 << 24, error) < 0 ||
	    check_count("max_position_embeddings", m->max_position_embeddings, 1 << 30, error) < 0)
		return -1;
	if (m->num_attention_heads % m->num_key_value_heads != 0)
		return wlb_fail(error, "num_key_value_heads is %lld: it must divide num_attention_heads, %lld",
		                (long long)m->num_key_value_heads, (long long)m->num_attention_heads);
	if (m->head_dim % 2 != 0)
		return wlb_fail(error, "head_dim is %lld: it must be even, rotary embeddings turn pairs",
		                (long long)m->head_dim);
	if (!isfinite(m->rope_theta) || m->rope_theta < 1.0)
		return wlb_fail(error, "rope_theta is %g: it must be a finite number of at least 1", m->rope_theta);
	if (!isfinite(m->rms_norm_eps) || m->rms_norm_eps <= 0.0 || m->rms_norm_eps >= 1.0)
		return wlb_fail(error, "rms_norm_eps is %g: it must lie between 0 and 1", m->rms_norm_eps);
	return 0;
}

int64_t wlb_model_parameters(const struct wlb_model *m)
{
	int64_t q = m->num_attention_heads * m->head_dim;
	int64_t kv = m->num_key_value_heads * m->head_dim;
	int64_t attention = m->hidden_size * (q + 2 * kv) + q * m->hidden_size;
	int64_t mlp = 3 * m->hidden_size * m->intermediate_size;
	int64_t norms = 2 * m->hidden_size;
	int64_t embedding = m->vocab_size * m->hidden_size;
	int64_t head = m->tie_word_embeddings ? 0 : embedding;
	return m->num_hidden_layers * (attention + mlp + norms) + embedding + head + m->hidden_size;
}
