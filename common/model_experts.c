#include "common/model_experts.h"

#include "common/model_field.h"

/* What Transformers takes for fields that a file lacks, from the configuration_*.py of each family. */
static const struct defaults {
	int64_t num_experts, num_experts_per_tok;
	int64_t moe_intermediate_size; /* 0: the family has no such field, intermediate_size is that of an expert */
	int64_t n_shared_experts, first_k_dense_replace;
	int64_t shared_expert_intermediate_size;
} defaults[WLB_FAMILIES] = {
	[WLB_FAMILY_MIXTRAL] = {8, 2, 0, 0, 0, 0},          [WLB_FAMILY_QWEN3_MOE] = {128, 8, 768, 0, 0, 0},
	[WLB_FAMILY_OLMOE] = {64, 8, 0, 0, 0, 0},           [WLB_FAMILY_QWEN2_MOE] = {60, 4, 1408, 0, 0, 5632},
	[WLB_FAMILY_DEEPSEEK_V2] = {64, 0, 1407, 2, 0, 0}, /* num_experts_per_tok must be given */
	[WLB_FAMILY_DEEPSEEK_V3] = {256, 8, 2048, 1, 3, 0}, [WLB_FAMILY_GPT_OSS] = {128, 4, 0, 0, 0, 0},
};

/* n_routed_experts, num_experts and num_local_experts are names of one field. */
static int read_count(const json_t *config, int64_t *experts, struct wlb_error *error)
{
	static const char *const names[] = {"n_routed_experts", "num_local_experts", "num_experts"};
	const json_t *first = NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *value = wlb_config_field(config, names[i]);
		if (value != NULL && first != NULL && !json_equal(value, first))
			return wlb_config_refuse(names[i], value,
			                         "another name of this field has another value: they must be equal",
			                         error);
		first = first != NULL ? first : value;
		if (wlb_config_count(config, names[i], WLB_CONFIG_OPTIONAL, experts, error) < 0)
			return -1;
	}
	return 0;
}

/* decoder_sparse_step, mlp_only_layers (Qwen) and moe_layer_freq (DeepSeek) say which layers have experts. */
static int check_layers(const json_t *config, struct wlb_error *error)
{
	static const char rule[] = "only models are known whose layers, after first_k_dense_replace, all have experts";
	static const char *const steps[] = {"decoder_sparse_step", "moe_layer_freq"};
	const json_t *dense = wlb_config_field(config, "mlp_only_layers");
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const json_t *step = wlb_config_field(config, steps[i]);
		if (step != NULL && !(json_is_integer(step) && json_integer_value(step) == 1))
			return wlb_config_refuse(steps[i], step, rule, error);
	}
	if (dense != NULL && !(json_is_array(dense) && json_array_size(dense) == 0))
		return wlb_config_refuse("mlp_only_layers", dense, rule, error);
	return 0;
}

/* The shared experts are one MLP, as wide as all of them; intermediate_size must be that of an expert already. */
static int read_shared(const json_t *config, const struct defaults *d, struct wlb_model *m, struct wlb_error *error)
{
	int64_t shared = d->n_shared_experts, size = d->shared_expert_intermediate_size;
	if (wlb_family(m->family)->latent &&
	    wlb_config_count(config, "n_shared_experts", WLB_CONFIG_OPTIONAL, &shared, error) < 0)
		return -1;
	if (wlb_family(m->family)->shared_gate &&
	    wlb_config_count(config, "shared_expert_intermediate_size", WLB_CONFIG_OPTIONAL, &size, error) < 0)
		return -1;
	if (shared < 0 || shared > 1 << 10)
		return wlb_fail(error, "n_shared_experts is %lld: it must be between 0 and %d", (long long)shared,
		                1 << 10);
	m->shared_intermediate_size = wlb_family(m->family)->latent ? shared * m->intermediate_size : size;
	return 0;
}

/* Multi-head latent attention. Without q_lora_rank queries have a matrix of their own, with null, as in DeepSeek V2
 * Lite. */
static int read_latent(const json_t *config, struct wlb_model *m, struct wlb_error *error)
{
	enum { DEFAULT_QUERIES = 1536 };
	int64_t key = 0;
	m->q_lora_rank = json_object_get(config, "q_lora_rank") == NULL ? DEFAULT_QUERIES : 0;
	if (wlb_config_count(config, "q_lora_rank", WLB_CONFIG_OPTIONAL, &m->q_lora_rank, error) < 0 ||
	    wlb_config_count(config, "kv_lora_rank", WLB_CONFIG_REQUIRED, &m->kv_lora_rank, error) < 0 ||
	    wlb_config_count(config, "qk_nope_head_dim", WLB_CONFIG_REQUIRED, &key, error) < 0 ||
	    wlb_config_count(config, "qk_rope_head_dim", WLB_CONFIG_REQUIRED, &m->qk_rope_head_dim, error) < 0 ||
	    wlb_config_count(config, "v_head_dim", WLB_CONFIG_REQUIRED, &m->v_head_dim, error) < 0)
		return -1;
	if (key < 1 || key > 1 << 12 || m->qk_rope_head_dim < 1 || m->qk_rope_head_dim > 1 << 12)
		return wlb_fail(error, "qk_nope_head_dim is %lld, qk_rope_head_dim %lld: they must be between 1 and %d",
		                (long long)key, (long long)m->qk_rope_head_dim, 1 << 12);
	m->head_dim = key + m->qk_rope_head_dim;
	m->num_key_value_heads = m->num_attention_heads;
	return 0;
}

int wlb_model_experts_read(const json_t *config, struct wlb_model *m, struct wlb_error *error)
{
	const struct defaults *d = &defaults[m->family];
	if (!wlb_family(m->family)->experts)
		return 0;
	m->num_experts = d->num_experts;
	m->num_experts_per_tok = d->num_experts_per_tok;
	m->dense_layers = d->first_k_dense_replace;
	if (check_layers(config, error) < 0 || read_count(config, &m->num_experts, error) < 0 ||
	    wlb_config_count(config, "num_experts_per_tok", WLB_CONFIG_OPTIONAL, &m->num_experts_per_tok, error) < 0)
		return -1;
	if (wlb_family(m->family)->latent &&
	    (read_latent(config, m, error) < 0 ||
	     wlb_config_count(config, "first_k_dense_replace", WLB_CONFIG_OPTIONAL, &m->dense_layers, error) < 0))
		return -1;
	m->dense_intermediate_size = m->dense_layers > 0 ? m->intermediate_size : 0;
	if (d->moe_intermediate_size > 0)
		m->intermediate_size = d->moe_intermediate_size;
	if (d->moe_intermediate_size > 0 &&
	    wlb_config_count(config, "moe_intermediate_size", WLB_CONFIG_OPTIONAL, &m->intermediate_size, error) < 0)
		return -1;
	if (m->intermediate_size < 1 || m->intermediate_size > 1 << 22)
		return 0; /* wlb_model_check refuses it */
	return read_shared(config, d, m, error);
}
