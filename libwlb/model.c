/* Checks the shape of a model and counts its parameters. */
#include "libwlb/wlb.h"

#include <math.h>

enum { INTERMEDIATE_MAX = 1 << 22 };

/* Checks that a field is in [1, limit]. The limits prevent overflow of products of two or three fields. */
static int check_count(const char *field, int64_t value, int64_t limit, struct wlb_error *error)
{
	if (value >= 1 && value <= limit)
		return 0;
	return wlb_fail(error, "%s is %lld: it must be between 1 and %lld", field, (long long)value, (long long)limit);
}

static int is_positive(double value)
{
	return isfinite(value) && value > 0.0;
}

static int check_scaling(const struct wlb_rope_scaling *s, struct wlb_error *error)
{
	if (s->type == WLB_ROPE_DEFAULT)
		return 0;
	if (!isfinite(s->factor) || s->factor < 1.0)
		return wlb_fail(error, "rope_scaling: factor is %g: it must be a finite number of at least 1",
		                s->factor);
	if (s->type == WLB_ROPE_LINEAR)
		return 0;
	if (!is_positive(s->original_max_position_embeddings))
		return wlb_fail(error, "rope_scaling: original_max_position_embeddings is %g: it must be above 0",
		                s->original_max_position_embeddings);
	if (s->type == WLB_ROPE_LLAMA3 && (!is_positive(s->low_freq_factor) || !isfinite(s->high_freq_factor) ||
	                                   s->high_freq_factor <= s->low_freq_factor))
		return wlb_fail(error,
		                "rope_scaling: low_freq_factor is %g, high_freq_factor %g: the first must be above 0, "
		                "the second above the first",
		                s->low_freq_factor, s->high_freq_factor);
	if (s->type == WLB_ROPE_YARN &&
	    (!is_positive(s->beta_slow) || !is_positive(s->beta_fast) || !is_positive(s->attention_factor)))
		return wlb_fail(
			error, "rope_scaling: beta_fast is %g, beta_slow %g, attention_factor %g: they must be above 0",
			s->beta_fast, s->beta_slow, s->attention_factor);
	return 0;
}

/* What a family without experts must not have: a width that is left over would be counted. */
static int check_no_experts(const struct wlb_model *m, struct wlb_error *error)
{
	const struct {
		const char *name;
		int64_t value;
	} counts[] = {
		{"num_experts", m->num_experts},
		{"num_experts_per_tok", m->num_experts_per_tok},
		{"shared_intermediate_size", m->shared_intermediate_size},
		{"dense_layers", m->dense_layers},
	};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i].value != 0)
			return wlb_fail(error, "%s is %lld: it must be 0 in a family without experts", counts[i].name,
			                (long long)counts[i].value);
	return 0;
}

/* All experts of a layer have together at most the columns of the largest dense MLP. */
static int check_experts(const struct wlb_model *m, struct wlb_error *error)
{
	if (!wlb_family(m->family)->experts)
		return check_no_experts(m, error);
	if (check_count("num_experts", m->num_experts, INTERMEDIATE_MAX / m->intermediate_size, error) < 0)
		return -1;
	if (m->dense_layers != 0 &&
	    (check_count("dense_layers", m->dense_layers, m->num_hidden_layers, error) < 0 ||
	     check_count("dense_intermediate_size", m->dense_intermediate_size, INTERMEDIATE_MAX, error) < 0))
		return -1;
	if (m->shared_intermediate_size != 0 &&
	    check_count("shared_intermediate_size", m->shared_intermediate_size, INTERMEDIATE_MAX, error) < 0)
		return -1;
	return check_count("num_experts_per_tok", m->num_experts_per_tok, m->num_experts, error);
}

/* The limits are those of sizes that are made of these. */
static int check_latent(const struct wlb_model *m, struct wlb_error *error)
{
	if (!wlb_family(m->family)->latent) {
		if (m->q_lora_rank == 0 && m->kv_lora_rank == 0 && m->qk_rope_head_dim == 0 && m->v_head_dim == 0)
			return 0;
		return wlb_fail(
			error,
			"q_lora_rank is %lld, kv_lora_rank %lld, qk_rope_head_dim %lld, v_head_dim %lld: they must "
			"be 0 in a family without latent attention",
			(long long)m->q_lora_rank, (long long)m->kv_lora_rank, (long long)m->qk_rope_head_dim,
			(long long)m->v_head_dim);
	}
	if (m->num_key_value_heads != m->num_attention_heads)
		return wlb_fail(error,
		                "num_key_value_heads is %lld: with latent attention it must be that of queries, %lld",
		                (long long)m->num_key_value_heads, (long long)m->num_attention_heads);
	if (m->q_lora_rank != 0 && check_count("q_lora_rank", m->q_lora_rank, 1 << 20, error) < 0)
		return -1;
	if (check_count("kv_lora_rank", m->kv_lora_rank, 1 << 20, error) < 0 ||
	    check_count("qk_rope_head_dim", m->qk_rope_head_dim, m->head_dim, error) < 0)
		return -1;
	return check_count("v_head_dim", m->v_head_dim, 1 << 12, error);
}

/* Fields of Gemma, each of which may be 0, and the families that have them. */
static int check_gemma(const struct wlb_model *m, struct wlb_error *error)
{
	const struct wlb_family_row *family = wlb_family(m->family);
	const struct {
		const char *name;
		double value;
		int may_be_there;
	} numbers[] = {
		{"query_pre_attn_scalar", m->query_pre_attn_scalar, family->scales_embedding},
		{"attn_logit_softcapping", m->attn_logit_softcapping, family->score_softcap},
		{"final_logit_softcapping", m->final_logit_softcapping, family->scales_embedding},
		{"rope_local_base_freq", m->rope_local_base_freq, family->local_rope},
	};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i].value == 0.0)
			continue;
		if (!numbers[i].may_be_there)
			return wlb_fail(error, "%s is %g: a model of the family %s has none", numbers[i].name,
			                numbers[i].value, family->model_type);
		if (!isfinite(numbers[i].value) || numbers[i].value < 1e-3 || numbers[i].value > 1e9)
			return wlb_fail(error, "%s is %g: it must lie between 0.001 and 1e9", numbers[i].name,
			                numbers[i].value);
	}
	if (m->rope_local_base_freq != 0.0 && m->rope_local_base_freq < 1.0)
		return wlb_fail(error, "rope_local_base_freq is %g: it must be at least 1", m->rope_local_base_freq);
	return 0;
}

int wlb_model_check(const struct wlb_model *m, struct wlb_error *error)
{
	if (check_count("hidden_size", m->hidden_size, 1 << 20, error) < 0 ||
	    check_count("intermediate_size", m->intermediate_size, INTERMEDIATE_MAX, error) < 0 ||
	    check_count("num_hidden_layers", m->num_hidden_layers, WLB_LAYERS_MAX, error) < 0 ||
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
	if (wlb_family(m->family) == NULL)
		return wlb_fail(error, "family is %d: it must be one of %d", (int)m->family, (int)WLB_FAMILIES);
	if (m->rotary_dim < 0 || m->rotary_dim > m->head_dim || m->rotary_dim % 2 != 0)
		return wlb_fail(error, "rotary_dim is %lld: it must be even and at most head_dim, %lld",
		                (long long)m->rotary_dim, (long long)m->head_dim);
	if (m->no_rope_layer_interval < 0)
		return wlb_fail(error, "no_rope_layer_interval is %lld: it must not be negative",
		                (long long)m->no_rope_layer_interval);
	if (m->sliding_window != 0 && check_count("sliding_window", m->sliding_window, 1 << 30, error) < 0)
		return -1;
	if (!isfinite(m->rope_theta) || m->rope_theta < 1.0)
		return wlb_fail(error, "rope_theta is %g: it must be a finite number of at least 1", m->rope_theta);
	if (!isfinite(m->rms_norm_eps) || m->rms_norm_eps <= 0.0 || m->rms_norm_eps >= 1.0)
		return wlb_fail(error, "rms_norm_eps is %g: it must lie between 0 and 1", m->rms_norm_eps);
	if (check_experts(m, error) < 0 || check_latent(m, error) < 0 || check_gemma(m, error) < 0)
		return -1;
	return check_scaling(&m->rope_scaling, error);
}

int64_t wlb_model_rotary_dim(const struct wlb_model *m)
{
	return m->rotary_dim > 0 ? m->rotary_dim : m->head_dim;
}

int wlb_model_layer_rotates(const struct wlb_model *m, int64_t layer)
{
	return m->no_rope_layer_interval == 0 || (layer + 1) % m->no_rope_layer_interval != 0;
}

int wlb_model_angle_kinds(const struct wlb_model *m)
{
	return m->rope_local_base_freq > 0.0 ? WLB_ANGLES_KINDS : 1;
}

enum wlb_angles wlb_model_layer_angles(const struct wlb_model *m, int64_t layer)
{
	int is_local = wlb_model_angle_kinds(m) > 1 && wlb_model_layer_window(m, layer) > 0;
	return is_local ? WLB_ANGLES_LOCAL : WLB_ANGLES_GLOBAL;
}

int64_t wlb_model_layer_window(const struct wlb_model *m, int64_t layer)
{
	return m->full_layers[layer / 64] >> (layer % 64) & 1 ? 0 : m->sliding_window;
}

double wlb_model_window_share(const struct wlb_model *m)
{
	int64_t layers = 0;
	if (m->sliding_window == 0)
		return 0.0;
	for (int64_t l = 0; l < m->num_hidden_layers; l++)
		layers += wlb_model_layer_window(m, l) > 0;
	return (double)layers / (double)m->num_hidden_layers;
}

int64_t wlb_model_norm_parameters(const struct wlb_model *m)
{
	return (wlb_family(m->family)->norm_biases ? 2 : 1) * m->hidden_size;
}

int64_t wlb_model_head_width(const struct wlb_model *m)
{
	return m->v_head_dim > 0 ? (m->head_dim + m->v_head_dim) / 2 : m->head_dim;
}

double wlb_model_expert_layers_share(const struct wlb_model *m)
{
	if (m->num_experts == 0)
		return 0.0;
	return (double)(m->num_hidden_layers - m->dense_layers) / (double)m->num_hidden_layers;
}

int64_t wlb_model_expert_biases(const struct wlb_model *m)
{
	return wlb_family(m->family)->all_biases ? m->num_experts * (2 * m->intermediate_size + m->hidden_size) : 0;
}

int64_t wlb_model_layer_vector_parameters(const struct wlb_model *m)
{
	const struct wlb_family_row *family = wlb_family(m->family);
	int64_t q = m->num_attention_heads * m->head_dim, kv = m->num_key_value_heads * m->head_dim;
	int64_t parameters = (family->norms == WLB_NORMS_BOTH ? 4 : 2) * wlb_model_norm_parameters(m);
	if (family->qkv_biases)
		parameters += q + 2 * kv;
	if (family->qk_norm == WLB_QK_NORM_HEAD)
		parameters += 2 * m->head_dim;
	if (family->qk_norm == WLB_QK_NORM_ALL)
		parameters += q + kv;
	if (family->all_biases)
		parameters += m->hidden_size + m->num_experts + m->num_attention_heads + wlb_model_expert_biases(m);
	return parameters + m->q_lora_rank + m->kv_lora_rank; /* norms of what latent attention is made of */
}

static int64_t mlp_parameters(const struct wlb_model *m, int64_t intermediate_size)
{
	return (wlb_family(m->family)->ungated ? 2 : 3) * intermediate_size * m->hidden_size;
}

int64_t wlb_model_expert_parameters(const struct wlb_model *m)
{
	return mlp_parameters(m, m->intermediate_size);
}

/* Of queries, keys and values, which latent attention makes of few elements. */
static int64_t latent_parameters(const struct wlb_model *m)
{
	return m->hidden_size * (m->q_lora_rank + m->kv_lora_rank + m->qk_rope_head_dim);
}

static int64_t attention_parameters(const struct wlb_model *m)
{
	int64_t heads = m->num_attention_heads, q = heads * m->head_dim, kv = m->num_key_value_heads * m->head_dim;
	if (!wlb_family(m->family)->latent)
		return m->hidden_size * (2 * q + 2 * kv);
	int64_t key = m->head_dim - m->qk_rope_head_dim; /* of a head alone */
	return latent_parameters(m) + (m->q_lora_rank > 0 ? m->q_lora_rank : m->hidden_size) * q +
	       m->kv_lora_rank * heads * (key + m->v_head_dim) + heads * m->v_head_dim * m->hidden_size;
}

/* Of what chooses experts, and weights the shared one. */
static int64_t router_parameters(const struct wlb_model *m)
{
	return m->hidden_size * (m->num_experts + (wlb_family(m->family)->shared_gate ? 1 : 0));
}

int64_t wlb_model_layer_whole_parameters(const struct wlb_model *m, int has_experts)
{
	return latent_parameters(m) + (has_experts ? router_parameters(m) : 0);
}

/* Of a layer with so many MLPs. */
static int64_t matrix_parameters(const struct wlb_model *m, int64_t mlps)
{
	return attention_parameters(m) + router_parameters(m) +
	       mlp_parameters(m, mlps * m->intermediate_size + m->shared_intermediate_size);
}

int64_t wlb_model_layer_matrix_parameters(const struct wlb_model *m)
{
	return matrix_parameters(m, m->num_experts > 0 ? m->num_experts : 1);
}

int64_t wlb_model_dense_layer_parameters(const struct wlb_model *m)
{
	return attention_parameters(m) + mlp_parameters(m, m->dense_intermediate_size);
}

/* With so many parameters in the matrices of each layer after the dense ones. */
static int64_t all_layers(const struct wlb_model *m, int64_t layer_matrices)
{
	return m->dense_layers * wlb_model_dense_layer_parameters(m) +
	       (m->num_hidden_layers - m->dense_layers) * layer_matrices;
}

int64_t wlb_model_active_matrices(const struct wlb_model *m)
{
	return all_layers(m, matrix_parameters(m, m->num_experts > 0 ? m->num_experts_per_tok : 1));
}

double wlb_model_layer_active_parameters(const struct wlb_model *m)
{
	return (double)wlb_model_active_matrices(m) / (double)m->num_hidden_layers;
}

static int64_t other_parameters(const struct wlb_model *m)
{
	int64_t tables = (m->tie_word_embeddings ? 1 : 2) * m->vocab_size * m->hidden_size;
	return m->num_hidden_layers * wlb_model_layer_vector_parameters(m) + tables + wlb_model_norm_parameters(m);
}

int64_t wlb_model_parameters(const struct wlb_model *m)
{
	return all_layers(m, wlb_model_layer_matrix_parameters(m)) + other_parameters(m);
}

int64_t wlb_model_active_parameters(const struct wlb_model *m)
{
	int64_t idle = m->num_experts - m->num_experts_per_tok;
	int64_t idle_biases = m->num_experts > 0 ? wlb_model_expert_biases(m) / m->num_experts * idle : 0;
	return wlb_model_active_matrices(m) + other_parameters(m) - m->num_hidden_layers * idle_biases;
}
