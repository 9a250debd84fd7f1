#include "coordinator/wlb/model_class.h"

#include <stddef.h>
#include <string.h>

const char wlb_model_class_names[] = "7B";

const struct wlb_model wlb_model_7b = {
	.hidden_size = 4096,
	.intermediate_size = 11008,
	.num_hidden_layers = 32,
	.num_attention_heads = 32,
	.num_key_value_heads = 32,
	.head_dim = 128,
	.vocab_size = 32000,
	.max_position_embeddings = 131072,
	.rope_theta = 10000.0,
	.rms_norm_eps = 1e-5,
};

static const struct {
	const char *name;
	const struct wlb_model *model;
} classes[] = {{"7B", &wlb_model_7b}};

const struct wlb_model *wlb_model_class(const char *name)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strcmp(classes[i].name, name) == 0)
			return classes[i].model;
	return NULL;
}
