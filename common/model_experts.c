#include "common/model_experts.h"

#include "common/model_field.h"

/* What Transformers takes for fields that a file lacks, from the configuration_*.py of each family. */
static const struct defaults {
	int64_t num_experts, num_experts_per_tok;
	int64_t moe_intermediate_size; /* 0: the family has no such field, intermediate_size is that of an expert */
} defaults[WLB_FAMILIES] = {
	[WLB_FAMILY_MIXTRAL] = {8, 2, 0},
	[WLB_FAMILY_QWEN3_MOE] = {128, 8, 768},
	[WLB_FAMILY_OLMOE] = {64, 8, 0},
};

/* num_experts and num_local_experts are names of one field. */
static int read_count(const json_t *config, int64_t *experts, struct wlb_error *error)
{
	const json_t *value = wlb_config_field(config, "num_experts");
	const json_t *other = wlb_config_field(config, "num_local_experts");
	if (value != NULL && other != NULL && !json_equal(value, other))
		return wlb_config_refuse("num_local_experts", other,
		                         "num_experts has another value: they must be equal", error);
	return wlb_config_count(config, other != NULL ? "num_local_experts" : "num_experts", WLB_CONFIG_OPTIONAL,
	                        experts, error);
}

/* Qwen 3: decoder_sparse_step and mlp_only_layers say which layers have experts. */
static int check_layers(const json_t *config, struct wlb_error *error)
{
	static const char rule[] = "only models with experts in every layer are known";
	const json_t *step = wlb_config_field(config, "decoder_sparse_step");
	const json_t *dense = wlb_config_field(config, "mlp_only_layers");
	if (step != NULL && !(json_is_integer(step) && json_integer_value(step) == 1))
		return wlb_config_refuse("decoder_sparse_step", step, rule, error);
	if (dense != NULL && !(json_is_array(dense) && json_array_size(dense) == 0))
		return wlb_config_refuse("mlp_only_layers", dense, rule, error);
	return 0;
}

int wlb_model_experts_read(const json_t *config, struct wlb_model *m, struct wlb_error *error)
{
	const struct defaults *d = &defaults[m->family];
	if (!wlb_family(m->family)->experts)
		return 0;
	m->num_experts = d->num_experts;
	m->num_experts_per_tok = d->num_experts_per_tok;
	if (check_layers(config, error) < 0 || read_count(config, &m->num_experts, error) < 0 ||
	    wlb_config_count(config, "num_experts_per_tok", WLB_CONFIG_OPTIONAL, &m->num_experts_per_tok, error) < 0)
		return -1;
	if (d->moe_intermediate_size == 0)
		return 0;
	m->intermediate_size = d->moe_intermediate_size;
	return wlb_config_count(config, "moe_intermediate_size", WLB_CONFIG_OPTIONAL, &m->intermediate_size, error);
}
