#include "worker/checkpoint/weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void wlb_weights_free(struct wlb_weights *w)
{
	for (int i = 0; i < w->slice_count; i++)
		free(w->slices[i].name);
	for (int i = 0; i < w->file_count; i++) {
		wlb_safetensors_close(w->files[i].opened);
		free(w->files[i].path);
	}
	free(w->slices);
	free(w->files);
	*w = (struct wlb_weights){0};
}

/* Room for one more of an array that grows by doubling at powers of two. */
static void *grow(void *array, int count, size_t element_bytes)
{
	if (count > 0 && (count & (count - 1)) != 0)
		return array;
	return reallocarray(array, count > 0 ? (size_t)count * 2 : 1, element_bytes);
}

int wlb_weights_add_file(struct wlb_weights *w, const char *folder, const char *name, int64_t bytes,
                         struct wlb_error *error)
{
	struct wlb_weights_file file = {.bytes = bytes};
	struct wlb_weights_file *files = grow(w->files, w->file_count, sizeof(*files));
	if (files == NULL)
		return wlb_fail(error, "out of memory for %d shards", w->file_count + 1);
	w->files = files;
	if (asprintf(&file.path, "%s/%s", folder, name) < 0)
		return wlb_fail(error, "out of memory for %d shards", w->file_count + 1);
	files[w->file_count] = file;
	return w->file_count++;
}

int wlb_weights_add_slice(struct wlb_weights *w, const struct wlb_slice *slice, struct wlb_error *error)
{
	struct wlb_slice *slices = grow(w->slices, w->slice_count, sizeof(*slices));
	if (slices == NULL)
		return wlb_fail(error, "out of memory for %d tensors", w->slice_count + 1);
	w->slices = slices;
	struct wlb_slice *added = &slices[w->slice_count];
	*added = *slice;
	added->name = strdup(slice->name);
	if (added->name == NULL)
		return wlb_fail(error, "out of memory for %d tensors", w->slice_count + 1);
	w->slice_count++;
	return 0;
}

/* The file, opened on first use and then compared with what the manifest says of its size. */
static struct wlb_safetensors *open_file(struct wlb_weights_file *file, struct wlb_error *error)
{
	if (file->opened != NULL)
		return file->opened;
	file->opened = wlb_safetensors_open(file->path, error);
	if (file->opened != NULL && file->bytes >= 0 && wlb_safetensors_bytes(file->opened) != file->bytes) {
		wlb_fail(error, "%s: has %lld bytes: the manifest says %lld", file->path,
		         (long long)wlb_safetensors_bytes(file->opened), (long long)file->bytes);
		return NULL;
	}
	return file->opened;
}

int wlb_weights_scan(struct wlb_weights *w, struct wlb_error *error)
{
	for (int i = 0; i < w->file_count; i++) {
		const struct wlb_safetensors *file = open_file(&w->files[i], error);
		if (file == NULL)
			return -1;
		w->files[i].bytes = wlb_safetensors_bytes(file);
		const struct wlb_stored_tensor *tensors;
		int count = wlb_safetensors_tensors(file, &tensors);
		for (int t = 0; t < count; t++) {
			struct wlb_slice slice = {.name = (char *)tensors[t].name,
			                          .file = i,
			                          .dimensions = tensors[t].dimensions,
			                          .global_rows = tensors[t].global_rows,
			                          .cols = tensors[t].cols,
			                          .row_start = tensors[t].row_start,
			                          .rows = tensors[t].rows};
			if (wlb_weights_add_slice(w, &slice, error) < 0)
				return -1;
		}
	}
	return 0;
}

static int by_name_and_row(const void *a, const void *b)
{
	const struct wlb_slice *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	if (order != 0)
		return order;
	if (x->row_start != y->row_start)
		return x->row_start < y->row_start ? -1 : 1;
	return x->rows < y->rows ? -1 : x->rows > y->rows;
}

static int same_tensor(const struct wlb_weights *w, int a, int b)
{
	return a >= 0 && b < w->slice_count && strcmp(w->slices[a].name, w->slices[b].name) == 0;
}

int wlb_weights_finish(struct wlb_weights *w, struct wlb_error *error)
{
	if (w->slice_count > 0)
		qsort(w->slices, (size_t)w->slice_count, sizeof(*w->slices), by_name_and_row);
	for (int i = 0; i < w->slice_count; i++) {
		const struct wlb_slice *s = &w->slices[i];
		const struct wlb_slice *before = same_tensor(w, i - 1, i) ? s - 1 : NULL;
		int64_t expected = before ? before->row_start + before->rows : 0, end = s->row_start + s->rows;
		if (s->row_start != expected || (!same_tensor(w, i, i + 1) && end != s->global_rows))
			return wlb_fail(
				error,
				"tensor %.200s: rows %lld to %lld follow row %lld of %lld: each row must be in one "
				"shard, and in one only",
				s->name, (long long)s->row_start, (long long)end, (long long)expected,
				(long long)s->global_rows);
		if (before && (s->dimensions != before->dimensions || s->global_rows != before->global_rows ||
		               s->cols != before->cols))
			return wlb_fail(error, "tensor %.200s: its slices differ in shape", s->name);
	}
	return 0;
}

int wlb_weights_check_sizes(const struct wlb_weights *w, struct wlb_error *error)
{
	for (int i = 0; i < w->file_count; i++) {
		struct stat st;
		if (stat(w->files[i].path, &st) < 0)
			return wlb_fail(error, "%s: %s", w->files[i].path, strerror(errno));
		if (st.st_size != w->files[i].bytes)
			return wlb_fail(error, "%s: has %lld bytes: the manifest says %lld", w->files[i].path,
			                (long long)st.st_size, (long long)w->files[i].bytes);
	}
	return 0;
}

/* Index of the tensor's first slice, or slice_count. */
static int find(const struct wlb_weights *w, const char *name)
{
	int low = 0, high = w->slice_count;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (strcmp(w->slices[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < w->slice_count && strcmp(w->slices[low].name, name) == 0 ? low : w->slice_count;
}

/* Copies what the slice and the part have in common. */
static int read_common(struct wlb_weights *w, const struct wlb_slice *s, const struct wlb_tensor_part *part,
                       struct wlb_error *error)
{
	int64_t first = part->row_start > s->row_start ? part->row_start : s->row_start;
	int64_t part_end = part->row_start + part->rows, slice_end = s->row_start + s->rows;
	int64_t end = part_end < slice_end ? part_end : slice_end;
	if (first >= end)
		return 0;
	struct wlb_safetensors *file = open_file(&w->files[s->file], error);
	if (file == NULL)
		return -1;
	const struct wlb_stored_tensor *t = wlb_safetensors_find(file, s->name);
	if (t == NULL || t->rows != s->rows || t->cols != s->cols)
		return wlb_fail(
			error,
			"%s: tensor %.200s: the manifest says it has %lld x %lld elements here, the shard differs",
			w->files[s->file].path, s->name, (long long)s->rows, (long long)s->cols);
	int64_t skipped = (first - part->row_start) * part->cols;
	char *to = (char *)part->data_host + skipped * (part->dtype == WLB_FLOAT32 ? 4 : 8);
	return wlb_safetensors_read(file, t, first - s->row_start, end - first, part->dtype, to, error);
}

int wlb_weights_read(struct wlb_weights *w, const struct wlb_tensor_part *part, struct wlb_error *error)
{
	int at = find(w, part->name);
	if (at == w->slice_count)
		return wlb_fail(error, "tensor %.200s is missing", part->name);
	const struct wlb_slice *s = &w->slices[at];
	if (s->dimensions != part->dimensions || s->global_rows != part->global_rows || s->cols != part->cols)
		return wlb_fail(error, "tensor %.200s has shape %lld x %lld, the model needs %lld x %lld", part->name,
		                (long long)s->global_rows, (long long)s->cols, (long long)part->global_rows,
		                (long long)part->cols);
	for (; at < w->slice_count && strcmp(w->slices[at].name, part->name) == 0; at++)
		if (read_common(w, &w->slices[at], part, error) < 0)
			return -1;
	return 0;
}
