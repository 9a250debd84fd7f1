#include "planner/model_class.h"

#include <stddef.h>
#include <strings.h>

/* Heads of 128, as many of keys and values, and an MLP 2.69 times as wide: Llama-2-7B's proportions. */
#define PAPER(hidden, intermediate, layers, heads)                                                                     \
	{                                                                                                              \
		.hidden_size = (hidden), .intermediate_size = (intermediate), .num_hidden_layers = (layers),           \
		.num_attention_heads = (heads), .num_key_value_heads = (heads), .head_dim = 128, .vocab_size = 32000,  \
		.max_position_embeddings = 131072, .rope_theta = 10000.0, .rms_norm_eps = 1e-5                         \
	}

const struct wlb_model wlb_model_7b = PAPER(4096, 11008, 32, 32);

/* Heads of 128, fewer of keys and values (grouped-query attention), embedding and head not tied. */
#define PUBLISHED(of_family, hidden, intermediate, layers, heads, kv_heads, vocabulary, positions, theta, eps)         \
	{                                                                                                              \
		.hidden_size = (hidden), .intermediate_size = (intermediate), .num_hidden_layers = (layers),           \
		.num_attention_heads = (heads), .num_key_value_heads = (kv_heads), .head_dim = 128,                    \
		.vocab_size = (vocabulary), .max_position_embeddings = (positions), .rope_theta = (theta),             \
		.rms_norm_eps = (eps), .family = WLB_FAMILY_##of_family                                                \
	}

#define OF_PAPER "a size class of the WLB-LLM paper (Wang et al., OSDI 2025) in Llama-2-7B's proportions"

/* The files are https://huggingface.co/NAME/blob/main/config.json. Llama-3-405B has 8 KV heads in the
 * paper (Dubey et al., 2024, table 3), whatever older copies of its file say. */
static const struct wlb_model_class classes[] = {
	{"Llama-3-8B", "config.json of meta-llama/Llama-3.1-8B",
         PUBLISHED(LLAMA, 4096, 14336, 32, 32, 8, 128256, 131072, 5e5, 1e-5)},
	{"Llama-3-70B", "config.json of meta-llama/Llama-3.1-70B",
         PUBLISHED(LLAMA, 8192, 28672, 80, 64, 8, 128256, 131072, 5e5, 1e-5)},
	{"Llama-3-405B", "config.json of meta-llama/Llama-3.1-405B",
         PUBLISHED(LLAMA, 16384, 53248, 126, 128, 8, 128256, 131072, 5e5, 1e-5)},
	{"Qwen2.5-7B", "config.json of Qwen/Qwen2.5-7B",
         PUBLISHED(QWEN2, 3584, 18944, 28, 28, 4, 152064, 131072, 1e6, 1e-6)},
	{"Qwen2.5-32B", "config.json of Qwen/Qwen2.5-32B",
         PUBLISHED(QWEN2, 5120, 27648, 64, 40, 8, 152064, 131072, 1e6, 1e-5)},
	{"Qwen2.5-72B", "config.json of Qwen/Qwen2.5-72B",
         PUBLISHED(QWEN2, 8192, 29568, 80, 64, 8, 152064, 131072, 1e6, 1e-5)},
	{"Qwen3-8B", "config.json of Qwen/Qwen3-8B",
         PUBLISHED(QWEN3, 4096, 12288, 36, 32, 8, 151936, 40960, 1e6, 1e-6)},
	{"Qwen3-32B", "config.json of Qwen/Qwen3-32B",
         PUBLISHED(QWEN3, 5120, 25600, 64, 64, 8, 151936, 40960, 1e6, 1e-6)},
	{"Mistral-7B", "config.json of mistralai/Mistral-7B-v0.3",
         PUBLISHED(MISTRAL, 4096, 14336, 32, 32, 8, 32768, 32768, 1e6, 1e-5)},
	{"550M", OF_PAPER, PAPER(1536, 4128, 16, 12)},
	{"7B", OF_PAPER, PAPER(4096, 11008, 32, 32)},
	{"30B", OF_PAPER, PAPER(7168, 19264, 48, 56)},
	{"70B", OF_PAPER, PAPER(8192, 22016, 80, 64)},
};

const struct wlb_model_class *wlb_model_class(const char *name)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strcasecmp(classes[i].name, name) == 0)
			return &classes[i];
	return NULL;
}
