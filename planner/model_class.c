#include "planner/model_class.h"

#include <stddef.h>
#include <string.h>

const char wlb_model_class_names[] = "550M, 7B, 30B, 70B";

/* Heads of 128, as many of keys and values, and an MLP 2.69 times as wide: Llama-2-7B's proportions. */
#define SHAPE(hidden, intermediate, layers, heads)                                                                     \
	{                                                                                                              \
		.hidden_size = (hidden), .intermediate_size = (intermediate), .num_hidden_layers = (layers),           \
		.num_attention_heads = (heads), .num_key_value_heads = (heads), .head_dim = 128, .vocab_size = 32000,  \
		.max_position_embeddings = 131072, .rope_theta = 10000.0, .rms_norm_eps = 1e-5                         \
	}

const struct wlb_model wlb_model_7b = SHAPE(4096, 11008, 32, 32);
static const struct wlb_model model_550m = SHAPE(1536, 4128, 16, 12);
static const struct wlb_model model_30b = SHAPE(7168, 19264, 48, 56);
static const struct wlb_model model_70b = SHAPE(8192, 22016, 80, 64);

static const struct {
	const char *name;
	const struct wlb_model *model;
} classes[] = {{"550M", &model_550m}, {"7B", &wlb_model_7b}, {"30B", &model_30b}, {"70B", &model_70b}};

const struct wlb_model *wlb_model_class(const char *name)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strcmp(classes[i].name, name) == 0)
			return classes[i].model;
	return NULL;
}
