#include "tests/bench/planner/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *path, const char *what)
{
	fprintf(stderr, "planner: %s: %s\n", path, what);
	exit(1);
}

static int64_t integer(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static struct wlb_model read_model(const json_t *object)
{
	return (struct wlb_model){
		.hidden_size = integer(object, "hidden_size"),
		.intermediate_size = integer(object, "intermediate_size"),
		.num_hidden_layers = integer(object, "num_hidden_layers"),
		.num_attention_heads = integer(object, "num_attention_heads"),
		.num_key_value_heads = integer(object, "num_key_value_heads"),
		.head_dim = integer(object, "head_dim"),
		.vocab_size = integer(object, "vocab_size"),
		.max_position_embeddings = 131072,
		.rope_theta = 10000.0,
		.rms_norm_eps = 1e-5,
		.tie_word_embeddings = json_is_true(json_object_get(object, "tie_word_embeddings")),
	};
}

static struct published_row read_row(const char *path, const json_t *object)
{
	const json_t *layout = json_object_get(object, "layout");
	const char *recompute = json_string_value(json_object_get(object, "recompute"));
	struct published_row row = {
		.name = json_string_value(json_object_get(object, "name")),
		.model = read_model(json_object_get(object, "model")),
		.seq_length = integer(object, "seq_length"),
		.batch = (int32_t)integer(object, "batch"),
		.micro_batch = (int32_t)integer(object, "micro_batch"),
		.interleave = (int32_t)integer(object, "interleave"),
		.zero_stage = 1,
		.recompute_layers = (int32_t)integer(object, "recompute_layers"),
		.gradient_bytes = 4,
		.recompute = WLB_RECOMPUTE_SELECTIVE,
		.release = json_is_true(json_object_get(object, "release")),
		.full_attention = json_is_true(json_object_get(object, "full_attention")),
		.tflops_per_gpu = json_number_value(json_object_get(object, "tflops_per_gpu")),
		.tokens_per_s_per_gpu = json_number_value(json_object_get(object, "tokens_per_s_per_gpu")),
	};
	int *ways[] = {&row.layout.tp, &row.layout.cp, &row.layout.pp, &row.layout.dp};
	for (size_t i = 0; i < 4; i++)
		*ways[i] = (int)json_integer_value(json_array_get(layout, i));
	if (recompute != NULL && strcmp(recompute, "full") == 0)
		row.recompute = WLB_RECOMPUTE_FULL;
	if (json_object_get(object, "zero_stage") != NULL)
		row.zero_stage = (int32_t)integer(object, "zero_stage");
	if (json_object_get(object, "gradient_bytes") != NULL)
		row.gradient_bytes = (int32_t)integer(object, "gradient_bytes");
	if (row.name == NULL || recompute == NULL || row.batch < 1 || row.seq_length < 1 ||
	    (row.tflops_per_gpu > 0.0) == (row.tokens_per_s_per_gpu > 0.0))
		fail(path, "a row needs name, recompute, batch, seq_length and one rate");
	return row;
}

struct published_table published_table_read(const char *path)
{
	json_error_t why;
	struct published_table table = {.root = json_load_file(path, JSON_REJECT_DUPLICATES, &why)};
	if (table.root == NULL)
		fail(path, why.text);
	const json_t *rows = json_object_get(table.root, "rows"), *row;
	size_t i;
	table.title = json_string_value(json_object_get(table.root, "title"));
	table.machine = json_string_value(json_object_get(table.root, "machine"));
	table.rows = calloc(json_array_size(rows) + 1, sizeof(*table.rows));
	if (table.title == NULL || table.machine == NULL || table.rows == NULL)
		fail(path, "needs title, machine and rows");
	json_array_foreach(rows, i, row) table.rows[table.count++] = read_row(path, row);
	return table;
}

void published_table_adapt(const struct published_table *table, struct wlb_machine *machine)
{
	double forward = json_number_value(json_object_get(table->root, "attention_efficiency"));
	double backward = json_number_value(json_object_get(table->root, "attention_backward_efficiency"));
	if (forward > 0.0)
		machine->attention_efficiency = forward;
	if (backward > 0.0)
		machine->attention_backward_efficiency = backward;
}

void published_table_free(struct published_table *table)
{
	json_decref(table->root);
	free(table->rows);
	*table = (struct published_table){0};
}
