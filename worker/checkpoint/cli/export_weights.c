#include "worker/checkpoint/cli/export_weights.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "worker/checkpoint/published.h"
#include "worker/model/published.h"

enum { PIECE_BYTES = 16 << 20 };

/* A tensor of the checkpoint, whole, and the rows that it has of one that is written. */
struct source {
	const char *name;
	struct wlb_tensor_block block;
	char published[WLB_PUBLISHED_NAME_BYTES];
	struct wlb_tensor_block place;
};

struct export
{
	struct wlb_weights *weights;
	const struct wlb_export_request *request;
	struct source *sources; /* by the name of what is written, then its rows */
	int source_count;
	struct wlb_tensor_part *tensors; /* that are written: whole, without data, by name */
	int *first_source;               /* of each tensor; the next ones are those of the one after it */
	int *file_of;                    /* of each tensor, from 0 */
	int count;
	int files;
	void *piece;
};

static int64_t tensor_bytes(const struct wlb_tensor_part *tensor)
{
	return wlb_tensor_block_elements(&tensor->block) * (int64_t)wlb_dtype_bytes(tensor->dtype);
}

static int by_place(const void *a, const void *b)
{
	const struct source *x = a, *y = b;
	int order = strcmp(x->published, y->published);
	if (order != 0)
		return order;
	return (x->place.row_start > y->place.row_start) - (x->place.row_start < y->place.row_start);
}

static int list_sources(struct export *e, struct wlb_error *error)
{
	const struct wlb_weights *w = e->weights;
	for (int i = 0; i < w->block_count; i++) {
		const struct wlb_tensor_block *b = &w->blocks[i].block;
		struct source *s = &e->sources[e->source_count];
		if (i > 0 && strcmp(w->blocks[i - 1].name, w->blocks[i].name) == 0)
			continue;
		s->name = w->blocks[i].name;
		s->block = (struct wlb_tensor_block){
			b->dimensions, b->global_rows, b->global_cols, 0, b->global_rows, 0, b->global_cols};
		s->place = s->block;
		if (wlb_published_block(e->request->model, s->name, s->published, &s->place) < 0)
			return wlb_fail(error, "tensor %.200s: the model has none of that name", s->name);
		e->source_count++;
	}
	qsort(e->sources, (size_t)e->source_count, sizeof(*e->sources), by_place);
	return e->source_count > 0 ? 0 : wlb_fail(error, "the checkpoint has no weights");
}

/* Appends the tensor of which sources[first] has the first rows. Returns the number of its sources; -1 where they are
 * not the rows of one tensor. */
static int add_tensor(struct export *e, int first, struct wlb_error *error)
{
	const struct source *s = &e->sources[first];
	struct wlb_tensor_block whole = s->place;
	int64_t rows = 0;
	int count = 0;
	for (; first + count < e->source_count && strcmp(s[count].published, s->published) == 0; count++) {
		if (s[count].place.row_start != rows || !wlb_tensor_block_same_whole(&s[count].place, &whole))
			break;
		rows += s[count].place.rows;
	}
	if (rows != whole.global_rows)
		return wlb_fail(error,
		                "tensor %.200s: the tensors of the checkpoint that are its rows have %lld of %lld: "
		                "they are not of the model that the checkpoint names",
		                s->published, (long long)rows, (long long)whole.global_rows);
	whole.row_start = 0;
	whole.rows = rows;
	e->first_source[e->count] = first;
	e->tensors[e->count++] =
		(struct wlb_tensor_part){.name = s->published, .dtype = e->request->dtype, .block = whole};
	return count;
}

static int list_tensors(struct export *e, struct wlb_error *error)
{
	size_t most = (size_t)e->weights->block_count + 1;
	e->sources = calloc(most, sizeof(*e->sources));
	e->tensors = calloc(most, sizeof(*e->tensors));
	e->first_source = calloc(most, sizeof(*e->first_source));
	e->file_of = calloc(most, sizeof(*e->file_of));
	e->piece = malloc(PIECE_BYTES);
	if (e->sources == NULL || e->tensors == NULL || e->first_source == NULL || e->file_of == NULL ||
	    e->piece == NULL)
		return wlb_fail(error, "out of memory for %d tensors", e->weights->block_count);
	int added = 0, rc = list_sources(e, error);
	for (int first = 0; rc == 0 && first < e->source_count; first += added) {
		added = add_tensor(e, first, error);
		rc = added < 0 ? -1 : 0;
	}
	e->first_source[e->count] = e->source_count;
	return rc;
}

/* Fills file after file. A tensor that is larger than a file may be has one of its own. */
static void divide_into_files(struct export *e)
{
	int64_t bytes = 0;
	e->files = 1;
	for (int i = 0; i < e->count; i++) {
		if (bytes > 0 && bytes + tensor_bytes(&e->tensors[i]) > e->request->most_bytes) {
			e->files++;
			bytes = 0;
		}
		bytes += tensor_bytes(&e->tensors[i]);
		e->file_of[i] = e->files - 1;
	}
}

static void name_file(const struct export *e, int file, char name[64])
{
	if (e->files == 1)
		snprintf(name, 64, WLB_PUBLISHED_FILE);
	else
		snprintf(name, 64, "model-%05d-of-%05d.safetensors", file + 1, e->files);
}

static int make_path(const struct export *e, const char *name, char path[PATH_MAX], struct wlb_error *error)
{
	if (snprintf(path, PATH_MAX, "%s/%s", e->request->folder, name) >= PATH_MAX)
		return wlb_fail(error, "%.100s...: the path is too long", e->request->folder);
	return 0;
}

/* Joins the blocks of some rows at a time. */
static int write_source(const struct export *e, const struct source *source, struct wlb_safetensors_output *output,
                        struct wlb_error *error)
{
	int64_t row_bytes = source->block.cols * (int64_t)wlb_dtype_bytes(e->request->dtype);
	int64_t most_rows = PIECE_BYTES / row_bytes;
	if (most_rows == 0)
		return wlb_fail(error, "tensor %.200s: a row of it has %lld bytes, at most %d can be exported",
		                source->name, (long long)row_bytes, PIECE_BYTES);
	for (int64_t row = 0; row < source->block.rows; row += most_rows) {
		struct wlb_tensor_part piece = {.name = source->name,
		                                .dtype = e->request->dtype,
		                                .block = source->block,
		                                .data_host = e->piece};
		int64_t left = source->block.rows - row;
		piece.block.row_start = row;
		piece.block.rows = left < most_rows ? left : most_rows;
		if (*e->request->is_interrupted)
			return wlb_fail(error, "interrupted: nothing is left");
		if (wlb_weights_read(e->weights, &piece, 1, error) < 0 ||
		    wlb_safetensors_append_data(output, e->piece, (size_t)(piece.block.rows * row_bytes), error) < 0)
			return -1;
	}
	return 0;
}

/* Writes the tensors [first, end) to the file. */
static int write_file(const struct export *e, int file, int first, int end, struct wlb_error *error)
{
	char name[64], path[PATH_MAX];
	struct wlb_safetensors_output *output;
	name_file(e, file, name);
	if (make_path(e, name, path, error) < 0 ||
	    wlb_safetensors_create_plain(path, &e->tensors[first], end - first, &output, error) < 0)
		return -1;
	for (int i = e->first_source[first]; i < e->first_source[end]; i++)
		if (write_source(e, &e->sources[i], output, error) < 0) {
			wlb_safetensors_discard(output);
			return -1;
		}
	return wlb_safetensors_finish(output, error);
}

static int write_files(const struct export *e, struct wlb_error *error)
{
	for (int file = 0, first = 0, end; file < e->files; file++, first = end) {
		for (end = first; end < e->count && e->file_of[end] == file;)
			end++;
		if (write_file(e, file, first, end, error) < 0)
			return -1;
	}
	return 0;
}

static int write_index(const struct export *e, int64_t bytes, struct wlb_error *error)
{
	char path[PATH_MAX], name[64];
	json_t *map = json_object();
	for (int i = 0; i < e->count; i++) {
		name_file(e, e->file_of[i], name);
		json_object_set_new(map, e->tensors[i].name, json_string(name));
	}
	json_t *index = json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)bytes, "weight_map", map);
	char *text = json_dumps(index, JSON_INDENT(2));
	json_decref(index);
	int rc = text != NULL ? make_path(e, WLB_PUBLISHED_INDEX, path, error)
	                      : wlb_fail(error, "out of memory for the index of %d tensors", e->count);
	if (rc == 0)
		rc = wlb_file_write(path, text, strlen(text), 0666, error);
	free(text);
	return rc;
}

int wlb_export_weights(struct wlb_weights *weights, const struct wlb_export_request *request,
                       struct wlb_export_result *result, struct wlb_error *error)
{
	struct export e = {.weights = weights, .request = request};
	int rc = list_tensors(&e, error);
	if (rc == 0) {
		divide_into_files(&e);
		rc = write_files(&e, error);
	}
	*result = (struct wlb_export_result){.tensors = e.count, .files = e.files};
	for (int i = 0; i < e.count; i++)
		result->bytes += tensor_bytes(&e.tensors[i]);
	if (rc == 0 && e.files > 1)
		rc = write_index(&e, result->bytes, error);
	free(e.piece);
	free(e.file_of);
	free(e.first_source);
	free(e.tensors);
	free(e.sources);
	return rc;
}
