#include "worker/checkpoint/shard_lists.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/word_digest.h"
#include "worker/checkpoint/shard_group.h"

/* Writes the path of a file of a group. */
static void group_path(int group, const char *file, char name[48])
{
	if (group == 0)
		snprintf(name, 48, "%s", file);
	else
		snprintf(name, 48, "part_%03d/%s", group, file);
}

void wlb_shard_name(int shard, char name[48])
{
	char file[32];
	snprintf(file, sizeof(file), "shard_%05d.safetensors", shard);
	group_path(shard / wlb_shard_group_size(), file, name);
}

void wlb_shard_index_name(int group, char name[48])
{
	group_path(group, "index.json", name);
}

/* ---- writing ---- */

json_t *wlb_shard_list_format(const struct wlb_weights *w, int first)
{
	json_t *shards = json_array();
	for (int i = 0; i < w->file_count; i++) {
		char name[48];
		wlb_shard_name(first + i, name);
		json_array_append_new(shards,
		                      json_pack("{s:s, s:I, s:o}", "file", name, "bytes", (json_int_t)w->files[i].bytes,
		                                "checksum", json_sprintf("%016" PRIx64, w->files[i].checksum)));
	}
	return shards;
}

static json_t *format_block(const struct wlb_stored_block *b)
{
	json_t *block = json_pack("[i,I,I,I,I]", b->file, (json_int_t)b->block.row_start, (json_int_t)b->block.rows,
	                          (json_int_t)b->block.col_start, (json_int_t)b->block.cols);
	if (b->range.end - b->range.begin < wlb_tensor_block_elements(&b->block)) {
		json_array_append_new(block, json_integer(b->range.begin));
		json_array_append_new(block, json_integer(b->range.end));
	}
	return block;
}

/* {"NAME": {"shape": [rows, cols], "blocks": [[shard, row_start, rows, col_start, cols], ...], and of a range of a
 * block two numbers more, where it begins and ends among the block's elements in the order of rows}, ...} */
json_t *wlb_tensor_list_format(const struct wlb_weights *w)
{
	json_t *tensors = json_object();
	for (int i = 0; i < w->block_count; i++) {
		const struct wlb_stored_block *b = &w->blocks[i];
		if (json_object_get(tensors, b->name) == NULL) {
			json_t *shape = json_pack("[I]", (json_int_t)b->block.global_rows);
			if (b->block.dimensions == 2)
				json_array_append_new(shape, json_integer(b->block.global_cols));
			json_object_set_new(tensors, b->name, json_pack("{s:o, s:[]}", "shape", shape, "blocks"));
		}
		json_t *tensor = json_object_get(tensors, b->name);
		json_array_append_new(json_object_get(tensor, "blocks"), format_block(b));
	}
	return tensors;
}

/* ---- reading ---- */

int wlb_shard_list_parse(const char *folder, json_t *shards, int first, struct wlb_weights *w, struct wlb_error *error)
{
	for (size_t i = 0; i < json_array_size(shards); i++) {
		json_error_t json_error;
		const char *file, *checksum = NULL;
		json_int_t bytes;
		char expected[48];
		wlb_shard_name(first + (int)i, expected);
		if (json_unpack_ex(json_array_get(shards, i), &json_error, 0, "{s:s, s:I, s?s}", "file", &file, "bytes",
		                   &bytes, "checksum", &checksum) < 0)
			return wlb_fail(error, "shards[%zu]: %s", i, json_error.text);
		/* The name is checked, not followed: a manifest cannot point out of its folder. */
		if (strcmp(file, expected) != 0 || bytes < 0)
			return wlb_fail(error, "shards[%zu] is '%.100s' of %lld bytes: it must be %s", i, file,
			                (long long)bytes, expected);
		if (wlb_weights_add_file(w, folder, file, bytes, error) < 0)
			return -1;
		w->files[i].has_checksum = checksum != NULL;
		if (checksum != NULL && wlb_word_digest_parse(checksum, &w->files[i].checksum) < 0)
			return wlb_fail(error, "shards[%zu]: checksum is '%.40s': it must be 16 hexadecimal digits", i,
			                checksum);
	}
	return 0;
}

static int parse_shape(const json_t *shape, struct wlb_stored_block *b, struct wlb_error *error)
{
	b->block.dimensions = (int)json_array_size(shape);
	b->block.global_rows = json_integer_value(json_array_get(shape, 0));
	b->block.global_cols = b->block.dimensions == 2 ? json_integer_value(json_array_get(shape, 1)) : 1;
	int64_t elements;
	if (b->block.dimensions < 1 || b->block.dimensions > 2 || b->block.global_rows < 1 ||
	    b->block.global_cols < 1 || __builtin_mul_overflow(b->block.global_rows, b->block.global_cols, &elements))
		return wlb_fail(error, "shape must be one or two whole numbers from 1 on");
	return 0;
}

/* Returns 1 where [start, start + count) holds at least one element and lies within [0, whole). */
static int lies_within(int64_t start, int64_t count, int64_t whole)
{
	return start >= 0 && count >= 1 && count <= whole && start <= whole - count;
}

static int parse_block(json_t *json, int file_count, struct wlb_stored_block *b, struct wlb_error *error)
{
	json_error_t json_error;
	json_int_t row_start, rows, col_start, cols, begin = 0, end = 0;
	bool has_range = json_array_size(json) == 7;
	if (json_unpack_ex(json, &json_error, 0, has_range ? "[i,I,I,I,I,I,I]" : "[i,I,I,I,I!]", &b->file, &row_start,
	                   &rows, &col_start, &cols, &begin, &end) < 0)
		return wlb_fail(error, "%s", json_error.text);
	if (b->file < 0 || b->file >= file_count)
		return wlb_fail(error, "shard is %d: it must be one of the %d shards", b->file, file_count);
	if (!lies_within(row_start, rows, b->block.global_rows) || !lies_within(col_start, cols, b->block.global_cols))
		return wlb_fail(error, "rows %lld + %lld, columns %lld + %lld: they must lie within %lld x %lld",
		                (long long)row_start, (long long)rows, (long long)col_start, (long long)cols,
		                (long long)b->block.global_rows, (long long)b->block.global_cols);
	b->block.row_start = row_start;
	b->block.rows = rows;
	b->block.col_start = col_start;
	b->block.cols = cols;
	b->range = (struct wlb_element_range){begin, has_range ? end : rows * cols};
	if (b->range.begin >= b->range.end || !lies_within(begin, b->range.end - begin, rows * cols))
		return wlb_fail(error, "elements %lld to %lld: they must lie within the block's %lld", (long long)begin,
		                (long long)b->range.end, (long long)(rows * cols));
	return 0;
}

/* Sets the digest of block `i` of a tensor: 0 where `digests` is NULL, as earlier versions wrote none. */
static int parse_block_digest(json_t *digests, size_t i, struct wlb_stored_block *b, struct wlb_error *error)
{
	const char *text = json_string_value(json_array_get(digests, i));
	b->digest = 0;
	if (digests != NULL && (text == NULL || wlb_word_digest_parse(text, &b->digest) < 0))
		return wlb_fail(error, "digest is '%.40s': it must be 16 hexadecimal digits",
		                text != NULL ? text : "missing");
	return 0;
}

static int parse_tensor(const char *name, json_t *json, int file_count, struct wlb_weights *w, struct wlb_error *error)
{
	json_error_t json_error;
	json_t *shape, *blocks, *digests = NULL;
	struct wlb_stored_block b = {.name = (char *)name};
	if (json_unpack_ex(json, &json_error, 0, "{s:o, s:o, s?o}", "shape", &shape, "blocks", &blocks, "digests",
	                   &digests) < 0)
		return wlb_fail(error, "%s", json_error.text);
	if (parse_shape(shape, &b, error) < 0)
		return -1;
	if (json_array_size(blocks) == 0)
		return wlb_fail(error, "blocks must be a list of at least one");
	for (size_t i = 0; i < json_array_size(blocks); i++) {
		if (parse_block(json_array_get(blocks, i), file_count, &b, error) < 0 ||
		    parse_block_digest(digests, i, &b, error) < 0)
			return wlb_fail_in(error, "blocks[%zu]", i);
		if (wlb_weights_add_block(w, &b, error) < 0)
			return -1;
	}
	return 0;
}

int wlb_tensor_list_parse(json_t *tensors, int file_count, struct wlb_weights *w, struct wlb_error *error)
{
	const char *name;
	json_t *tensor;
	json_object_foreach(tensors, name, tensor)
	{
		if (parse_tensor(name, tensor, file_count, w, error) < 0)
			return wlb_fail_in(error, "tensor %.200s", name);
	}
	return 0;
}
