#include "worker/record/attempt_json.h"

#include <stdlib.h>

#include "common/json_text.h"

static json_t *rank_map(const struct wlb_launch *launch)
{
	json_t *map = json_array();
	int *seen = calloc((size_t)launch->node_count, sizeof(*seen)); /* ranks of each node so far */
	for (int rank = 0; seen != NULL && rank < launch->size; rank++)
		json_array_append_new(map, json_pack("{s:i, s:o, s:i}", "rank", rank, "node",
		                                     wlb_json_text(wlb_launch_node(launch, rank)), "local_rank",
		                                     seen[launch->node_of[rank]]++));
	free(seen);
	return map;
}

static json_t *model_json(const struct wlb_model *m)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:I}", "model_type", "llama",
	                 "hidden_size", (json_int_t)m->hidden_size, "intermediate_size",
	                 (json_int_t)m->intermediate_size, "num_hidden_layers", (json_int_t)m->num_hidden_layers,
	                 "num_attention_heads", (json_int_t)m->num_attention_heads, "num_key_value_heads",
	                 (json_int_t)m->num_key_value_heads, "head_dim", (json_int_t)m->head_dim, "vocab_size",
	                 (json_int_t)m->vocab_size, "max_position_embeddings", (json_int_t)m->max_position_embeddings,
	                 "rope_theta", m->rope_theta, "rms_norm_eps", m->rms_norm_eps, "tie_word_embeddings",
	                 m->tie_word_embeddings, "parameters", (json_int_t)wlb_model_parameters(m));
}

json_t *wlb_attempt_json(const struct wlb_launch *launch, const struct wlb_train_plan *plan,
                         const struct wlb_train_options *options)
{
	int resumed = plan->checkpoint[0] != '\0';
	json_t *layout = json_pack("{s:i, s:i, s:i, s:i}", "tp", plan->split.layout.tp, "cp", plan->split.layout.cp,
	                           "pp", plan->split.layout.pp, "dp", plan->split.layout.dp);
	return json_pack("{s:o, s:i, s:o, s:o, s:I, s:I, s:I, s:s, s:s, s:I, s:o?}", "layout", layout, "world_size",
	                 launch->size, "rank_map", rank_map(launch), "model", model_json(&plan->model), "seq_length",
	                 (json_int_t)options->seq_length, "global_batch_size", (json_int_t)options->global_batch_size,
	                 "train_iters", (json_int_t)options->train_iters, "dtype",
	                 wlb_dtype_name((enum wlb_dtype)options->dtype), "device",
	                 options->device == WLB_DEVICE_CUDA ? "cuda" : "cpu", "resumed_step",
	                 (json_int_t)(resumed ? plan->facts.step : 0), "checkpoint",
	                 resumed ? wlb_json_text(plan->checkpoint) : NULL);
}
