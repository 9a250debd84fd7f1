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

static int has_head_dim(const json_t *model)
{
	return json_object_get(model, "head_dim") != NULL;
}

/* Sizes are read by shape, which refuses one that is absent; a flag that is misspelt would be as if it were absent. */
static void check_model(const struct place *at, const json_t *model)
{
	const size_t sizes = json_is_true(json_object_get(model, "experts")) ? 0 : 6;
	static const char *const flags[] = {"experts", "gated", "tie_word_embeddings"};
	size_t known = sizes + (size_t)has_head_dim(model);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		known += json_is_boolean(json_object_get(model, flags[i])) ? 1 : 0;
	if (json_object_size(model) != known)
		published_fail(at->source, at->row, "its model has a field that row.c does not know, or lacks a size");
}

/* An MLP of two matrices is that of Nemotron's family, whose other operations are Llama's. */
static struct wlb_model read_model(const struct place *at, const json_t *model)
{
	struct wlb_model m = {
		.family = json_is_false(json_object_get(model, "gated")) ? WLB_FAMILY_NEMOTRON : WLB_FAMILY_LLAMA,
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
	};
	m.head_dim = has_head_dim(model) ? shape(at, model, "head_dim") : m.hidden_size / m.num_attention_heads;
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
	const char *told = text(at, "recompute");
	if (told == NULL)
		return -1;
	if (strcmp(told, "full") == 0)
		return WLB_RECOMPUTE_FULL;
	return strcmp(told, "none") == 0 ? WLB_RECOMPUTE_NONE : WLB_RECOMPUTE_SELECTIVE;
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
		.experts = json_is_true(json_object_get(model, "experts")),
		.layout = read_layout(&at),
		.window_tokens = integer(&at, "window_tokens"),
		.batch_windows = (int32_t)integer(&at, "batch_windows"),
		.micro_batch_windows = (int32_t)integer(&at, "micro_batch_windows"),
		.interleave = (int32_t)integer(&at, "interleave"),
		.zero_stage = (int32_t)number(&at, "zero_stage", 1.0),
		.shard_ranks = (int32_t)integer(&at, "shard_ranks"),
		.recompute = read_recompute(&at),
		.recompute_layers = (int32_t)integer(&at, "recompute_layers"),
		.offloaded_layers = (int32_t)integer(&at, "offloaded_layers"),
		.gradient_bytes = (int32_t)integer(&at, "gradient_bytes"),
		.trainer = text(&at, "preset"),
		.attention = read_attention(&at),
		.release = json_is_true(field(&at, "release")),
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
	check_model(&at, model);
	if (!row.experts)
		row.model = read_model(&at, model);
	return row;
}
