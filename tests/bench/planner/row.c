/* Makes a row of the table from its object. */
#include <string.h>

#include "tests/bench/planner/table.h"

/* Where a field of a row stands: in the row, else in its source. */
struct place {
	const json_t *source, *row;
};

static const json_t *field(const struct place *at, const char *name)
{
	const json_t *value = json_object_get(at->row, name);
	return value != NULL ? value : json_object_get(at->source, name);
}

static const char *text(const struct place *at, const char *name)
{
	return json_string_value(field(at, name));
}

/* `absent` where neither has the field. */
static double number(const struct place *at, const char *name, double absent)
{
	const json_t *value = field(at, name);
	return value != NULL ? json_number_value(value) : absent;
}

static int64_t integer(const struct place *at, const char *name)
{
	return json_integer_value(field(at, name));
}

static int64_t shape(const struct place *at, const json_t *model, const char *name)
{
	const json_t *value = json_object_get(model, name);
	if (!json_is_integer(value) || json_integer_value(value) < 1)
		published_fail(at->source, at->row, "\"%s\" of its model must be a positive integer", name);
	return json_integer_value(value);
}

/* Sizes that not every model has, by the names of struct wlb_model. */
static const struct {
	const char *name;
	size_t offset;
} sizes[] = {
	{"head_dim", offsetof(struct wlb_model, head_dim)},
	{"num_experts", offsetof(struct wlb_model, num_experts)},
	{"num_experts_per_tok", offsetof(struct wlb_model, num_experts_per_tok)},
	{"shared_intermediate_size", offsetof(struct wlb_model, shared_intermediate_size)},
	{"dense_layers", offsetof(struct wlb_model, dense_layers)},
	{"dense_intermediate_size", offsetof(struct wlb_model, dense_intermediate_size)},
	{"q_lora_rank", offsetof(struct wlb_model, q_lora_rank)},
	{"kv_lora_rank", offsetof(struct wlb_model, kv_lora_rank)},
	{"qk_rope_head_dim", offsetof(struct wlb_model, qk_rope_head_dim)},
	{"v_head_dim", offsetof(struct wlb_model, v_head_dim)},
	{"sliding_window", offsetof(struct wlb_model, sliding_window)},
	{"no_rope_layer_interval", offsetof(struct wlb_model, no_rope_layer_interval)},
};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Sizes that all models have are read by shape, which refuses one that is absent; another field that is misspelt would
 * be as if it were absent. */
static void check_model(const struct place *at, const json_t *model)
{
	static const char *const flags[] = {"mamba", "gated", "tie_word_embeddings"};
	size_t known = json_is_true(json_object_get(model, "mamba")) ? 0 : 6;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		known += json_is_boolean(json_object_get(model, flags[i])) ? 1 : 0;
	for (size_t i = 0; i < SIZES; i++)
		known += json_object_get(model, sizes[i].name) != NULL ? 1 : 0;
	known += json_is_string(json_object_get(model, "family")) ? 1 : 0;
	if (json_object_size(model) != known)
		published_fail(at->source, at->row, "its model has a field that row.c does not know, or lacks a size");
}

/* Of config.json's model_type. Where none is given it is Llama's, or with an MLP of two matrices Nemotron's, whose
 * other operations are Llama's. */
static enum wlb_family read_family(const struct place *at, const json_t *model)
{
	const char *given = json_string_value(json_object_get(model, "family"));
	enum wlb_family family = WLB_FAMILY_LLAMA;
	if (given == NULL && json_is_false(json_object_get(model, "gated")))
		return WLB_FAMILY_NEMOTRON;
	while (given != NULL && family < WLB_FAMILIES && strcmp(wlb_family(family)->model_type, given) != 0)
		family++;
	if (family == WLB_FAMILIES)
		published_fail(at->source, at->row, "\"family\" of its model is none that is known");
	return family;
}

/* The families of the table that have a window have it in every second layer, from the first on. */
static void set_windows(struct wlb_model *m)
{
	for (int64_t l = 1; m->sliding_window > 0 && l < m->num_hidden_layers && l < WLB_LAYERS_MAX; l += 2)
		m->full_layers[l / 64] |= (uint64_t)1 << (l % 64);
}

/* Returns zeros for a model of Mamba. */
static struct wlb_model read_model(const struct place *at, const json_t *model)
{
	check_model(at, model);
	if (json_is_true(json_object_get(model, "mamba")))
		return (struct wlb_model){0};
	struct wlb_model m = {
		.hidden_size = shape(at, model, "hidden_size"),
		.intermediate_size = shape(at, model, "intermediate_size"),
		.num_hidden_layers = shape(at, model, "num_hidden_layers"),
		.num_attention_heads = shape(at, model, "num_attention_heads"),
		.num_key_value_heads = shape(at, model, "num_key_value_heads"),
		.vocab_size = shape(at, model, "vocab_size"),
		.max_position_embeddings = 131072,
		.rope_theta = 10000.0,
		.rms_norm_eps = 1e-5,
		.tie_word_embeddings = json_is_true(json_object_get(model, "tie_word_embeddings")),
		.family = read_family(at, model),
	};
	struct wlb_error error;
	m.head_dim = m.hidden_size / m.num_attention_heads;
	for (size_t i = 0; i < SIZES; i++)
		if (json_object_get(model, sizes[i].name) != NULL)
			*(int64_t *)((char *)&m + sizes[i].offset) = shape(at, model, sizes[i].name);
	set_windows(&m);
	if (wlb_model_check(&m, &error) < 0)
		published_fail(at->source, at->row, "its model: %s", error.message);
	return m;
}

static struct wlb_layout read_layout(const struct place *at)
{
	const json_t *list = field(at, "layout");
	struct wlb_layout layout = {0};
	int *ways[] = {&layout.tp, &layout.cp, &layout.pp, &layout.dp};
	if (json_array_size(list) != 4)
		published_fail(at->source, at->row, "\"layout\" must be [tp, cp, pp, dp]");
	for (size_t i = 0; i < 4; i++) {
		*ways[i] = (int)json_integer_value(json_array_get(list, i));
		if (*ways[i] < 1)
			published_fail(at->source, at->row, "\"layout\" must have positive integers");
	}
	return layout;
}

static int read_recompute(const struct place *at)
{
	const char *given = text(at, "recompute");
	enum wlb_recompute set;
	struct wlb_error error;
	if (given == NULL)
		return -1;
	if (wlb_recompute_set_parse(given, &set, &error) < 0)
		published_fail(at->source, at->row, "\"recompute\": %s", error.message);
	return (int)set;
}

/* The kernel that a source's words for its attention name; NULL where they do not tell one. */
static const char *read_attention(const struct place *at)
{
	static const struct {
		const char *words, *kernel;
	} kernels[] = {
		{"unfused", "unfused"},      {"FlashAttention 1 in Triton", "fa1-triton"},
		{"FlashAttention 2", "fa2"}, {"cuDNN", "cudnn"},
		{"SDPA of PyTorch", "sdpa"}, {"SDPA of PyTorch, FlashAttention 2", "sdpa"},
		{"FlexAttention", "sdpa"},
	};
	const char *told = text(at, "attention");
	for (size_t i = 0; told != NULL && i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (strcmp(kernels[i].words, told) == 0)
			return kernels[i].kernel;
	return NULL;
}

static struct published_rate read_rate(const struct place *at)
{
	const char *flops = text(at, "flops");
	struct published_rate rate = {
		.step_s = number(at, "step_s", 0.0),
		.tokens_per_s = number(at, "tokens_per_s", 0.0),
		.tokens_per_s_per_gpu = number(at, "tokens_per_s_per_gpu", 0.0),
		.tflops_per_gpu = number(at, "tflops_per_gpu", 0.0),
	};
	int told = (rate.step_s > 0.0) + (rate.tokens_per_s > 0.0) + (rate.tokens_per_s_per_gpu > 0.0) +
	           (rate.tflops_per_gpu > 0.0);
	if (told != (field(at, "ran") != NULL ? 0 : 1) || (flops != NULL) != (rate.tflops_per_gpu > 0.0))
		published_fail(at->source, at->row,
		               "needs one rate or \"ran\", and \"flops\" with tflops_per_gpu alone");
	if (flops != NULL && strcmp(flops, "causal") != 0)
		rate.flops = strcmp(flops, "full") == 0 ? PUBLISHED_FULL : PUBLISHED_RECOMPUTED;
	return rate;
}

struct published_row published_row_read(const json_t *models, const json_t *source, const json_t *object)
{
	const struct place at = {source, object};
	const char *name = text(&at, "model");
	const json_t *model = name != NULL ? json_object_get(models, name) : NULL;
	struct published_row row = {
		.name = text(&at, "name"),
		.machine = text(&at, "machine"),
		.precision = text(&at, "precision"),
		.recipe = text(&at, "recipe"),
		.mamba = json_is_true(json_object_get(model, "mamba")),
		.ep = (int32_t)integer(&at, "ep"),
		.layout = read_layout(&at),
		.window_tokens = integer(&at, "window_tokens"),
		.batch_windows = (int32_t)integer(&at, "batch_windows"),
		.micro_batch_windows = (int32_t)integer(&at, "micro_batch_windows"),
		.interleave = (int32_t)integer(&at, "interleave"),
		.pipelines = (int32_t)number(&at, "pipelines", 1.0),
		.zero_stage = (int32_t)number(&at, "zero_stage", 1.0),
		.shard_ranks = (int32_t)integer(&at, "shard_ranks"),
		.recompute = read_recompute(&at),
		.recompute_layers = (int32_t)integer(&at, "recompute_layers"),
		.offloaded_layers = (int32_t)integer(&at, "offloaded_layers"),
		.gradient_bytes = (int32_t)integer(&at, "gradient_bytes"),
		.optimizer_bytes = number(&at, "optimizer_bytes", 0.0),
		.fragmentation = number(&at, "fragmentation", -1.0),
		.trainer = text(&at, "preset"),
		.attention = read_attention(&at),
		.release = json_is_true(field(&at, "release")),
		.weighted_experts = json_is_true(field(&at, "weighted_experts")),
		.rows_by_node = json_is_true(field(&at, "rows_by_node")),
		.experts_in_turn = json_is_true(field(&at, "experts_in_turn")),
		.grouped_experts = !json_is_false(field(&at, "grouped_experts")),
		.overlap_experts = !json_is_false(field(&at, "overlap_experts")),
		.split_operations = !json_is_false(field(&at, "split_operations")),
		.tp_overlap = number(&at, "tp_overlap", -1.0),
		.overlap_gradients = json_is_true(field(&at, "overlap_gradients")),
		.overlap = !json_is_false(field(&at, "overlap")),
		.network_gbits_per_s = number(&at, "network_gbits_per_s", 0.0),
		.ran = field(&at, "ran") == NULL ? -1 : json_is_true(field(&at, "ran")),
		.gpu_gib = number(&at, "gpu_gib", 0.0),
		.rate = read_rate(&at),
	};
	if (row.name == NULL || row.machine == NULL || row.precision == NULL || text(&at, "attention") == NULL ||
	    row.window_tokens < 1 || row.batch_windows < 1)
		published_fail(source, object,
		               "a row needs name, machine, precision, attention, window_tokens and batch_windows");
	if (strcmp(row.precision, "fp8") == 0 && row.recipe == NULL)
		published_fail(source, object, "a row in fp8 needs \"recipe\"");
	if (model == NULL)
		published_fail(source, object, "there is no model \"%s\"", name != NULL ? name : "");
	row.model = read_model(&at, model);
	return row;
}
