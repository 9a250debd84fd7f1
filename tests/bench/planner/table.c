/* Reads the file: its sources, the fields that they and their rows may have, and which sources are held out. */
#include "tests/bench/planner/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/sha2.h>

/* A source that has set no constant is held out where the SHA-256 of its title begins with a lower byte than this. */
enum { HELD_OUT_BELOW = 0x98 };

enum { YEAR_LEAST = 2021, YEAR_MOST = 2026 };

/* A field of a source, of its rows, or of both. */
static const struct field {
	const char *name;
	enum { TEXT, FLAG, INTEGER, REAL, LIST } kind;
	double least, most; /* of an INTEGER or a REAL */
	const char *values; /* of a TEXT, between spaces; NULL: any */
} fields[] = {
	{"title", TEXT, 0, 0, NULL},
	{"address", TEXT, 0, 0, NULL},
	{"read", TEXT, 0, 0, NULL},
	{"trainer", TEXT, 0, 0, NULL},
	{"preset", TEXT, 0, 0, NULL},
	{"attention", TEXT, 0, 0, NULL},
	{"name", TEXT, 0, 0, NULL},
	{"model", TEXT, 0, 0, NULL},
	{"machine", TEXT, 0, 0, NULL},
	{"precision", TEXT, 0, 0, " float16 bfloat16 fp8 mxfp8 nvfp4 "},
	{"recipe", TEXT, 0, 0, " delayed tensorwise rowwise "}, /* of scales, where precision is fp8 */
	{"recompute", TEXT, 0, 0, NULL},                        /* read by wlb_recompute_set_parse */
	{"flops", TEXT, 0, 0, " causal full recomputed "},
	{"sets_constants", FLAG, 0, 0, NULL},
	{"held_out", FLAG, 0, 0, NULL},
	{"overlap", FLAG, 0, 0, NULL},
	{"overlap_gradients", FLAG, 0, 0, NULL},
	{"release", FLAG, 0, 0, NULL},
	{"rows_by_node", FLAG, 0, 0, NULL},
	{"experts_in_turn", FLAG, 0, 0, NULL},
	{"grouped_experts", FLAG, 0, 0, NULL},
	{"overlap_experts", FLAG, 0, 0, NULL},
	{"split_operations", FLAG, 0, 0, NULL},
	{"weighted_experts", FLAG, 0, 0, NULL},
	{"assumptions", LIST, 0, 0, NULL},
	{"rows", LIST, 0, 0, NULL},
	{"layout", LIST, 0, 0, NULL},
	{"year", INTEGER, YEAR_LEAST, YEAR_MOST, NULL},
	{"window_tokens", INTEGER, 1, 1 << 24, NULL},
	{"batch_windows", INTEGER, 1, 1 << 20, NULL},
	{"micro_batch_windows", INTEGER, 1, 1 << 10, NULL},
	{"interleave", INTEGER, 1, WLB_LAYERS_MAX, NULL},
	{"pipelines", INTEGER, 1, 1 << 10, NULL},
	{"zero_stage", INTEGER, 0, 3, NULL},
	{"shard_ranks", INTEGER, 1, 1 << 20, NULL},
	{"recompute_layers", INTEGER, 1, WLB_LAYERS_MAX, NULL},
	{"gradient_bytes", INTEGER, 2, 4, NULL},
	{"optimizer_bytes", REAL, 4, 12, NULL},
	{"fragmentation", REAL, 0, 1, NULL},
	{"offloaded_layers", INTEGER, 1, WLB_LAYERS_MAX, NULL},
	{"ep", INTEGER, 1, 1 << 10, NULL},
	{"tp_overlap", REAL, 0, 1, NULL},
	{"network_gbits_per_s", REAL, 1, 1e6, NULL},
	{"gpu_gib", REAL, 1, 1e4, NULL},
	{"used_gib", REAL, 0.1, 1e4, NULL},
	{"used", TEXT, 0, 0, NULL},
	{"ran", FLAG, 0, 0, NULL},
	{"step_s", REAL, 1e-3, 1e5, NULL},
	{"tokens_per_s", REAL, 1, 1e10, NULL},
	{"tokens_per_s_per_gpu", REAL, 1, 1e7, NULL},
	{"tflops_per_gpu", REAL, 1, 1e5, NULL},
};

void published_fail(const json_t *source, const json_t *row, const char *format, ...)
{
	const char *title = json_string_value(json_object_get(source, "title"));
	const char *name = json_string_value(json_object_get(row, "name"));
	va_list values;
	fprintf(stderr, "planner: %s%s%s: ", title != NULL ? title : "a source without a title",
	        row != NULL ? ", " : "",
	        name != NULL  ? name
	        : row != NULL ? "a row without a name"
	                      : "");
	va_start(values, format);
	vfprintf(stderr, format, values);
	va_end(values);
	fputc('\n', stderr);
	exit(1);
}

/* One of the values between spaces. */
static int one_of(const char *text, const char *values)
{
	char word[64];
	return snprintf(word, sizeof(word), " %s ", text) < (int)sizeof(word) && strstr(values, word) != NULL;
}

static int in_range(const struct field *field, const json_t *value)
{
	return json_number_value(value) >= field->least && json_number_value(value) <= field->most;
}

static int fits_field(const struct field *field, const json_t *value)
{
	switch (field->kind) {
	case TEXT:
		return json_is_string(value) &&
		       (field->values == NULL || one_of(json_string_value(value), field->values));
	case FLAG:
		return json_is_boolean(value);
	case LIST:
		return json_is_array(value);
	case INTEGER:
		return json_is_integer(value) && in_range(field, value);
	default:
		return json_is_number(value) && in_range(field, value);
	}
}

static void check_fields(const json_t *source, const json_t *row)
{
	const char *key;
	const json_t *value;
	json_object_foreach((json_t *)(row != NULL ? row : source), key, value)
	{
		size_t i = 0;
		while (i < sizeof(fields) / sizeof(fields[0]) && strcmp(fields[i].name, key) != 0)
			i++;
		if (i == sizeof(fields) / sizeof(fields[0]))
			published_fail(source, row, "\"%s\" is no field: remove it or add it to table.c", key);
		if (!fits_field(&fields[i], value))
			published_fail(source, row, "\"%s\" is not in the range that table.c has", key);
	}
}

static void check_held_out(const json_t *source, const char *title)
{
	struct sha256_ctx context;
	uint8_t digest[SHA256_DIGEST_SIZE];
	sha256_init(&context);
	sha256_update(&context, strlen(title), (const uint8_t *)title);
	sha256_digest(&context, sizeof(digest), digest);
	int held_out = digest[0] < HELD_OUT_BELOW && !json_is_true(json_object_get(source, "sets_constants"));
	if (json_is_true(json_object_get(source, "held_out")) != held_out)
		published_fail(source, NULL, "held_out must be %s: the SHA-256 of the title begins with %02x",
		               held_out ? "true" : "false", digest[0]);
}

static struct published_source read_source(const json_t *models, const json_t *object)
{
	static const char *const needed[] = {"title",   "address", "read",     "year",
	                                     "trainer", "preset",  "held_out", "assumptions"};
	const json_t *rows = json_object_get(object, "rows"), *row;
	size_t i;
	check_fields(object, NULL);
	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (json_object_get(object, needed[i]) == NULL)
			published_fail(object, NULL, "has no \"%s\"", needed[i]);
	struct published_source source = {.title = json_string_value(json_object_get(object, "title"))};
	check_held_out(object, source.title);
	source.rows = calloc(json_array_size(rows) + 1, sizeof(*source.rows));
	if (source.rows == NULL || json_array_size(rows) == 0)
		published_fail(object, NULL, "has no rows");
	json_array_foreach(rows, i, row)
	{
		check_fields(object, row);
		source.rows[source.count++] = published_row_read(models, object, row);
	}
	return source;
}

struct published_table published_table_read(const char *path)
{
	json_error_t why;
	struct published_table table = {.root = json_load_file(path, JSON_REJECT_DUPLICATES, &why)};
	const json_t *sources = json_object_get(table.root, "sources"), *source;
	size_t i;
	if (table.root == NULL) {
		fprintf(stderr, "planner: %s, line %d: %s\n", path, why.line, why.text);
		exit(1);
	}
	table.sources = calloc(json_array_size(sources) + 1, sizeof(*table.sources));
	if (table.sources == NULL || json_array_size(sources) == 0)
		published_fail(NULL, NULL, "%s needs a list of sources", path);
	json_array_foreach(sources, i, source) table.sources[table.count++] =
		read_source(json_object_get(table.root, "models"), source);
	return table;
}

void published_table_free(struct published_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->sources[i].rows);
	free(table->sources);
	json_decref(table->root);
	*table = (struct published_table){0};
}
