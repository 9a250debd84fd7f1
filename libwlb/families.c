/* How the layers of each family differ from Llama's. */
#include "libwlb/wlb.h"

static const struct wlb_family_row families[WLB_FAMILIES] = {
	[WLB_FAMILY_LLAMA] = {.model_type = "llama", .architecture = "LlamaForCausalLM"},
	[WLB_FAMILY_MISTRAL] = {.model_type = "mistral", .architecture = "MistralForCausalLM"},
	[WLB_FAMILY_QWEN2] = {.model_type = "qwen2", .architecture = "Qwen2ForCausalLM", .qkv_biases = 1},
	[WLB_FAMILY_QWEN3] = {.model_type = "qwen3", .architecture = "Qwen3ForCausalLM", .qk_norm = WLB_QK_NORM_HEAD},
	[WLB_FAMILY_OLMO2] = {.model_type = "olmo2",
                              .architecture = "Olmo2ForCausalLM",
                              .qk_norm = WLB_QK_NORM_ALL,
                              .norms = WLB_NORMS_AFTER},
	[WLB_FAMILY_PHI3] = {.model_type = "phi3", .architecture = "Phi3ForCausalLM", .fused_tensors = 1},
	[WLB_FAMILY_SMOLLM3] = {.model_type = "smollm3", .architecture = "SmolLM3ForCausalLM"},
	[WLB_FAMILY_MIXTRAL] = {.model_type = "mixtral",
                                .architecture = "MixtralForCausalLM",
                                .experts = 1,
                                .not_trained = "it has experts"},
	[WLB_FAMILY_QWEN3_MOE] = {.model_type = "qwen3_moe",
                                  .architecture = "Qwen3MoeForCausalLM",
                                  .qk_norm = WLB_QK_NORM_HEAD,
                                  .experts = 1,
                                  .not_trained = "it has experts"},
	[WLB_FAMILY_OLMOE] = {.model_type = "olmoe",
                              .architecture = "OlmoeForCausalLM",
                              .qk_norm = WLB_QK_NORM_ALL,
                              .experts = 1,
                              .not_trained = "it has experts"},
	[WLB_FAMILY_NEMOTRON] = {.model_type = "nemotron",
                                 .architecture = "NemotronForCausalLM",
                                 .ungated = 1,
                                 .norm_biases = 1,
                                 .not_trained = "its MLP has no gate, its norms have biases"},
	[WLB_FAMILY_GEMMA2] = {.model_type = "gemma2",
                               .architecture = "Gemma2ForCausalLM",
                               .norms = WLB_NORMS_BOTH,
                               .norms_add_one = 1,
                               .gelu_gate = 1,
                               .scales_embedding = 1,
                               .score_softcap = 1},
	[WLB_FAMILY_GEMMA3] = {.model_type = "gemma3_text",
                               .architecture = "Gemma3ForCausalLM",
                               .qk_norm = WLB_QK_NORM_HEAD,
                               .norms = WLB_NORMS_BOTH,
                               .norms_add_one = 1,
                               .gelu_gate = 1,
                               .scales_embedding = 1,
                               .local_rope = 1},
};

const struct wlb_family_row *wlb_family(enum wlb_family family)
{
	return (unsigned)family < WLB_FAMILIES ? &families[family] : NULL;
}
