#include "worker/checkpoint/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libwlb/capacity.h"
#include "worker/checkpoint/convert.h"
#include "worker/checkpoint/folder.h"
#include "worker/data/input.h"

void wlb_weights_free(struct wlb_weights *w)
{
	for (int i = 0; i < w->block_count; i++)
		free(w->blocks[i].name);
	for (int i = 0; i < w->file_count; i++) {
		wlb_safetensors_close(w->files[i].opened);
		free(w->files[i].path);
	}
	free(w->blocks);
	free(w->files);
	free(w->indexes);
	*w = (struct wlb_weights){0};
}

int wlb_weights_add_file(struct wlb_weights *w, const char *folder, const char *name, int64_t bytes,
                         struct wlb_error *error)
{
	struct wlb_weights_file file = {.bytes = bytes};
	if (wlb_grow((void **)&w->files, &w->file_capacity, (size_t)w->file_count + 1, sizeof(*w->files)) < 0 ||
	    asprintf(&file.path, "%s/%s", folder, name) < 0)
		return wlb_fail(error, "out of memory for %d shards", w->file_count + 1);
	w->files[w->file_count] = file;
	return w->file_count++;
}

int wlb_weights_add_block(struct wlb_weights *w, const struct wlb_stored_block *block, struct wlb_error *error)
{
	if (wlb_grow((void **)&w->blocks, &w->block_capacity, (size_t)w->block_count + 1, sizeof(*w->blocks)) < 0)
		return wlb_fail(error, "out of memory for %d tensors", w->block_count + 1);
	struct wlb_stored_block *added = &w->blocks[w->block_count];
	*added = *block;
	added->name = strdup(block->name);
	if (added->name == NULL)
		return wlb_fail(error, "out of memory for %d tensors", w->block_count + 1);
	w->block_count++;
	return 0;
}

/* The file, opened on first use; its size is then compared with the manifest's. */
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

/* There may be more files than a process may have open. */
static void close_file(struct wlb_weights_file *file)
{
	wlb_safetensors_close(file->opened);
	file->opened = NULL;
}

/* Sets the sum of the checksums of all tensors. Returns whether all have one. */
static bool sum_checksums(const struct wlb_safetensors *file, uint64_t *checksum)
{
	const struct wlb_stored_tensor *tensors;
	int count = wlb_safetensors_tensors(file, &tensors);
	*checksum = 0;
	for (int i = 0; i < count; i++) {
		if (!tensors[i].has_checksum)
			return false;
		*checksum += tensors[i].checksum;
	}
	return true;
}

int wlb_weights_scan(struct wlb_weights *w, struct wlb_error *error)
{
	for (int i = 0; i < w->file_count; i++) {
		const struct wlb_safetensors *file = open_file(&w->files[i], error);
		if (file == NULL)
			return -1;
		w->files[i].bytes = wlb_safetensors_bytes(file);
		w->files[i].has_checksum = sum_checksums(file, &w->files[i].checksum);
		const struct wlb_stored_tensor *tensors;
		int count = wlb_safetensors_tensors(file, &tensors);
		for (int k = 0; k < count; k++) {
			const struct wlb_stored_tensor *t = &tensors[k];
			struct wlb_stored_block block = {
				.name = (char *)t->name, .file = i, .block = t->block, .range = t->range};
			if (t->range.end > t->range.begin && wlb_weights_add_block(w, &block, error) < 0)
				return -1;
		}
		close_file(&w->files[i]);
	}
	return 0;
}

static int by_name_and_place(const void *a, const void *b)
{
	const struct wlb_stored_block *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	if (order != 0)
		return order;
	if (x->block.row_start != y->block.row_start)
		return x->block.row_start < y->block.row_start ? -1 : 1;
	if (x->block.col_start != y->block.col_start)
		return x->block.col_start < y->block.col_start ? -1 : 1;
	return x->range.begin < y->range.begin ? -1 : x->range.begin > y->range.begin;
}

static int ends_band(const struct wlb_tensor_block *b)
{
	return b->col_start + b->cols == b->global_cols;
}

static int is_same_block(const struct wlb_tensor_block *a, const struct wlb_tensor_block *b)
{
	return a->row_start == b->row_start && a->rows == b->rows && a->col_start == b->col_start &&
	       a->cols == b->cols && wlb_tensor_block_same_whole(a, b);
}

static int ends_block(const struct wlb_stored_block *stored)
{
	return stored->range.end == wlb_tensor_block_elements(&stored->block);
}

/* Whether the block begins where the one before it ends (NULL: where the tensor begins), in bands of equal height. */
static int block_follows(const struct wlb_tensor_block *b, const struct wlb_tensor_block *before)
{
	if (before == NULL)
		return b->row_start == 0 && b->col_start == 0;
	if (ends_band(before))
		return b->row_start == before->row_start + before->rows && b->col_start == 0;
	return b->row_start == before->row_start && b->rows == before->rows &&
	       b->col_start == before->col_start + before->cols;
}

/* The same of ranges, those of one block first. */
static int follows(const struct wlb_stored_block *stored, const struct wlb_stored_block *before)
{
	if (before != NULL && is_same_block(&stored->block, &before->block))
		return stored->range.begin == before->range.end;
	if (stored->range.begin != 0 || (before != NULL && !ends_block(before)))
		return 0;
	return block_follows(&stored->block, before != NULL ? &before->block : NULL);
}

/* The tensor's block after the i-th, or NULL. */
static const struct wlb_stored_block *next_block(const struct wlb_weights *w, int i)
{
	int same = i + 1 < w->block_count && strcmp(w->blocks[i].name, w->blocks[i + 1].name) == 0;
	return same ? &w->blocks[i + 1] : NULL;
}

int wlb_weights_shards(const struct wlb_weights *w)
{
	int shards = w->file_count;
	for (int i = 0; i < w->index_count; i++)
		shards += w->indexes[i].shards;
	return shards;
}

void wlb_weights_sort(struct wlb_weights *w)
{
	if (w->block_count > 0)
		qsort(w->blocks, (size_t)w->block_count, sizeof(*w->blocks), by_name_and_place);
	for (int i = 0; i < w->block_count && w->index_count == 0; i++)
		w->files[w->blocks[i].file].elements += w->blocks[i].range.end - w->blocks[i].range.begin;
}

int wlb_weights_finish(struct wlb_weights *w, struct wlb_error *error)
{
	const struct wlb_stored_block *before = NULL;
	wlb_weights_sort(w);
	for (int i = 0; i < w->block_count; i++) {
		const struct wlb_stored_block *stored = &w->blocks[i];
		const struct wlb_tensor_block *b = &stored->block;
		int is_last = next_block(w, i) == NULL;
		if (before && !wlb_tensor_block_same_whole(b, &before->block))
			return wlb_fail(error, "tensor %.200s: its blocks differ in the shape of the whole",
			                stored->name);
		int ends = ends_block(stored) && ends_band(b) && b->row_start + b->rows == b->global_rows;
		if (!follows(stored, before) || (is_last && !ends))
			return wlb_fail(
				error,
				"tensor %.200s: there is a gap or an overlap at the block of rows %lld + %lld, "
				"columns %lld + %lld, of %lld x %lld, elements %lld to %lld of it: each element must "
				"be in one shard, and in one only",
				stored->name, (long long)b->row_start, (long long)b->rows, (long long)b->col_start,
				(long long)b->cols, (long long)b->global_rows, (long long)b->global_cols,
				(long long)stored->range.begin, (long long)stored->range.end);
		before = is_last ? NULL : stored;
	}
	return 0;
}

int wlb_weights_add_group(struct wlb_weights *whole, int index, const struct wlb_weights *group,
                          struct wlb_error *error)
{
	for (int i = 0; i < group->block_count;) {
		struct wlb_stored_block joined = group->blocks[i];
		const struct wlb_stored_block *next = next_block(group, i++);
		while (next != NULL && is_same_block(&next->block, &joined.block) &&
		       next->range.begin == joined.range.end) {
			joined.range.end = next->range.end;
			next = next_block(group, i++);
		}
		joined.file = index;
		if (wlb_weights_add_block(whole, &joined, error) < 0)
			return -1;
	}
	return 0;
}

static bool is_same_range(const struct wlb_stored_block *a, const struct wlb_stored_block *b)
{
	return strcmp(a->name, b->name) == 0 && is_same_block(&a->block, &b->block) &&
	       a->range.begin == b->range.begin && a->range.end == b->range.end;
}

int wlb_weights_check_group(const struct wlb_weights *whole, int index, const struct wlb_weights *group,
                            struct wlb_error *error)
{
	struct wlb_weights joined = {0};
	int rc = wlb_weights_add_group(&joined, index, group, error), found = 0;
	for (int i = 0; rc == 0 && i < whole->block_count; i++) {
		const struct wlb_stored_block *said = &whole->blocks[i];
		if (said->file != index)
			continue;
		if (found == joined.block_count || !is_same_range(&joined.blocks[found++], said))
			rc = wlb_fail(error, "tensor %.200s: its blocks are others than the manifest says", said->name);
	}
	if (rc == 0 && found < joined.block_count)
		rc = wlb_fail(error, "tensor %.200s: it has blocks that the manifest does not say",
		              joined.blocks[found].name);
	wlb_weights_free(&joined);
	return rc;
}

/* Index of the tensor's first block, or block_count. */
static int find_first(const struct wlb_weights *w, const char *name)
{
	int low = 0, high = w->block_count;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (strcmp(w->blocks[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < w->block_count && strcmp(w->blocks[low].name, name) == 0 ? low : w->block_count;
}

/* The tensor in the block's file, which must be the block that the manifest says; NULL otherwise. */
static const struct wlb_stored_tensor *find_stored(const struct wlb_weights_file *file,
                                                   const struct wlb_stored_block *stored, struct wlb_error *error)
{
	const struct wlb_stored_tensor *t = wlb_safetensors_find(file->opened, stored->name);
	const struct wlb_tensor_block *b = &stored->block;
	if (t != NULL && is_same_block(&t->block, b) && t->range.begin == stored->range.begin &&
	    t->range.end == stored->range.end)
		return t;
	wlb_fail(error,
	         "%s: tensor %.200s: the manifest says that rows %lld + %lld, columns %lld + %lld of it, elements %lld "
	         "to %lld, are here, the shard differs",
	         file->path, stored->name, (long long)b->row_start, (long long)b->rows, (long long)b->col_start,
	         (long long)b->cols, (long long)stored->range.begin, (long long)stored->range.end);
	return NULL;
}

/* Orders the indexes of blocks by their file. */
static int by_file(const void *a, const void *b, void *weights)
{
	const struct wlb_weights *w = weights;
	int x = w->blocks[*(const int *)a].file, y = w->blocks[*(const int *)b].file;
	return x < y ? -1 : x > y;
}

/* Returns the indexes of all blocks, those of a file one after the other, which the caller frees; NULL on error. */
static int *order_by_file(struct wlb_weights *w, struct wlb_error *error)
{
	int *order = calloc((size_t)w->block_count + 1, sizeof(*order));
	if (order == NULL) {
		wlb_fail(error, "out of memory for %d tensors", w->block_count);
		return NULL;
	}
	for (int i = 0; i < w->block_count; i++)
		order[i] = i;
	qsort_r(order, (size_t)w->block_count, sizeof(*order), by_file, w);
	return order;
}

/* The manifest's is compared with those of the tensors in the header. */
static int check_checksum(const struct wlb_weights_file *file, struct wlb_error *error)
{
	uint64_t checksum;
	bool has_all = sum_checksums(file->opened, &checksum);
	if (has_all && checksum == file->checksum)
		return 0;
	return wlb_fail(error, "%s: its tensors' checksums are %016" PRIx64 "%s: the manifest says %016" PRIx64,
	                file->path, checksum, has_all ? "" : " without those of some tensors", file->checksum);
}

/* Checks the file and its blocks, whose indexes are order[0] to order[count - 1]. */
static int check_file(struct wlb_weights *w, struct wlb_weights_file *file, const int *order, int count,
                      struct wlb_error *error)
{
	int rc = wlb_folder_check_file(file->path, file->bytes, error);
	if (rc == 0)
		rc = wlb_safetensors_try_open(file->path, &file->opened, error);
	for (int i = 0; rc == 0 && i < count; i++)
		rc = find_stored(file, &w->blocks[order[i]], error) != NULL ? 0 : -1;
	if (rc == 0 && file->has_checksum)
		rc = check_checksum(file, error);
	close_file(file);
	return rc;
}

int wlb_weights_check_files(struct wlb_weights *w, int begin, int end, struct wlb_error *error)
{
	int *order = order_by_file(w, error), rc = 0;
	if (order == NULL)
		return WLB_UNREADABLE;
	for (int i = 0, index = 0; rc == 0 && i < end; i++) {
		int first = index;
		while (index < w->block_count && w->blocks[order[index]].file == i)
			index++;
		if (i >= begin)
			rc = check_file(w, &w->files[i], &order[first], index - first, error);
	}
	free(order);
	return rc;
}

/* Its file stays open. */
static int verify_block(struct wlb_weights *w, const struct wlb_stored_block *stored, struct wlb_error *error)
{
	struct wlb_weights_file *file = &w->files[stored->file];
	int rc = file->opened == NULL ? wlb_safetensors_try_open(file->path, &file->opened, error) : 0;
	if (rc < 0)
		return rc;
	const struct wlb_stored_tensor *tensor = find_stored(file, stored, error);
	return tensor != NULL ? wlb_safetensors_verify(file->opened, tensor, stored->digest, error) : -1;
}

static double stored_elements(const struct wlb_stored_block *stored)
{
	return (double)(stored->range.end - stored->range.begin);
}

int wlb_weights_verify(struct wlb_weights *w, int share, int shares, struct wlb_error *error)
{
	int *order = order_by_file(w, error), rc = 0;
	if (order == NULL)
		return WLB_UNREADABLE;
	double all = 0.0, before = 0.0; /* elements */
	for (int i = 0; i < w->block_count; i++)
		all += stored_elements(&w->blocks[i]);
	for (int i = 0; rc == 0 && i < w->block_count; i++) {
		const struct wlb_stored_block *b = &w->blocks[order[i]];
		int is_mine = (int)(before / all * shares) == share;
		before += stored_elements(b);
		if (is_mine)
			rc = verify_block(w, b, error);
		if (i + 1 == w->block_count || w->blocks[order[i + 1]].file != b->file)
			close_file(&w->files[b->file]);
	}
	free(order);
	return rc;
}

/* What [a, a + a_count) and [b, b + b_count) have in common: its length, 0 when nothing, and *first. */
static int64_t common_length(int64_t a, int64_t a_count, int64_t b, int64_t b_count, int64_t *first)
{
	int64_t end = a + a_count < b + b_count ? a + a_count : b + b_count;
	*first = a > b ? a : b;
	return end > *first ? end - *first : 0;
}

/* Rows and columns of a block or of a whole tensor: [row, row + rows), [col, col + cols). */
struct rectangle {
	int64_t row, rows, col, cols;
};

/* Divides the elements of a range of a block into rectangles of the whole tensor: whole rows of the block, and a part
 * of the row before and of the row after them. Returns their number. */
static int divide_range(const struct wlb_tensor_block *b, struct wlb_element_range range,
                        struct rectangle rectangles[3])
{
	int count = 0;
	if (range.begin == range.end)
		return 0;
	int64_t row = range.begin / b->cols, col = range.begin % b->cols;
	int64_t last = range.end / b->cols, end = range.end % b->cols;
	if (row == last) {
		rectangles[count++] = (struct rectangle){row, 1, col, end - col};
	} else {
		if (col > 0)
			rectangles[count++] = (struct rectangle){row++, 1, col, b->cols - col};
		if (last > row)
			rectangles[count++] = (struct rectangle){row, last - row, 0, b->cols};
		if (end > 0)
			rectangles[count++] = (struct rectangle){last, 1, 0, end};
	}
	for (int i = 0; i < count; i++) {
		rectangles[i].row += b->row_start;
		rectangles[i].col += b->col_start;
	}
	return count;
}

/* Returns what two rectangles have in common; of no rows or columns where they have nothing. */
static struct rectangle intersect(const struct rectangle *a, const struct rectangle *b)
{
	struct rectangle common;
	common.rows = common_length(a->row, a->rows, b->row, b->rows, &common.row);
	common.cols = common_length(a->col, a->cols, b->col, b->cols, &common.col);
	return common;
}

/* Copies a rectangle that both the block and the part hold. */
static int read_rectangle(struct wlb_weights *w, const struct wlb_stored_block *stored, const struct rectangle *r,
                          const struct wlb_tensor_part *part, struct wlb_error *error)
{
	const struct wlb_tensor_block *from = &stored->block, *to = &part->block;
	struct wlb_weights_file *file = &w->files[stored->file];
	uint64_t checksum = 0;
	if (open_file(file, error) == NULL)
		return -1;
	const struct wlb_stored_tensor *t = find_stored(file, stored, error);
	if (t == NULL)
		return -1;
	const struct wlb_stored_range range = {r->row - from->row_start, r->rows, r->col - from->col_start, r->cols};
	int64_t element = (r->row - to->row_start) * to->cols + (r->col - to->col_start);
	char *out = (char *)part->data_host +
	            (element - wlb_tensor_part_range(part).begin) * (int64_t)wlb_dtype_bytes(part->dtype);
	if (wlb_safetensors_read(file->opened, t, &range, part->dtype, out, to->cols, &checksum, error) < 0)
		return -1;
	if (!part->is_copy) {
		file->read_checksum += checksum;
		file->read_elements += r->rows * r->cols;
	}
	return 0;
}

enum { COMMON_MOST = 9 };

/* Returns how many rectangles the stored range and the part have in common. */
static int find_common(const struct wlb_stored_block *stored, const struct wlb_tensor_part *part,
                       struct rectangle found[COMMON_MOST])
{
	struct rectangle from[3], to[3];
	int from_count = divide_range(&stored->block, stored->range, from), found_count = 0;
	int to_count = divide_range(&part->block, wlb_tensor_part_range(part), to);
	for (int i = 0; i < from_count * to_count; i++) {
		const struct rectangle common = intersect(&from[i / to_count], &to[i % to_count]);
		if (common.rows > 0 && common.cols > 0)
			found[found_count++] = common;
	}
	return found_count;
}

int wlb_weights_check_parts(const struct wlb_weights *w, const struct wlb_tensor_part *parts, int count,
                            struct wlb_error *error)
{
	for (int i = 0; i < count; i++) {
		const struct wlb_tensor_part *part = &parts[i];
		if (wlb_tensor_part_check(part, error) < 0)
			return -1;
		int index = find_first(w, part->name);
		if (index == w->block_count)
			return wlb_fail(error, "tensor %.200s is missing", part->name);
		const struct wlb_tensor_block *b = &w->blocks[index].block;
		if (!wlb_tensor_block_same_whole(b, &part->block))
			return wlb_fail(error, "tensor %.200s has shape %lld x %lld, the model needs %lld x %lld",
			                part->name, (long long)b->global_rows, (long long)b->global_cols,
			                (long long)part->block.global_rows, (long long)part->block.global_cols);
	}
	return 0;
}

/* A block and a part that have elements in common. */
struct overlap {
	const struct wlb_stored_block *block;
	const struct wlb_tensor_part *part;
};

struct overlaps {
	struct overlap *list;
	size_t count, capacity;
};

/* The tensor's first block; NULL where there is none of that name. */
static const struct wlb_stored_block *first_block(const struct wlb_weights *w, const char *name, int *index)
{
	*index = find_first(w, name);
	return *index < w->block_count ? &w->blocks[*index] : NULL;
}

bool wlb_weights_overlaps(const struct wlb_weights *w, int file, const struct wlb_tensor_part *parts, int count)
{
	struct rectangle common[COMMON_MOST];
	for (int i = 0, index; i < count; i++) {
		const struct wlb_stored_block *b = first_block(w, parts[i].name, &index);
		for (; b != NULL; b = next_block(w, index++))
			if (b->file == file && find_common(b, &parts[i], common) > 0)
				return true;
	}
	return false;
}

/* Adds all overlaps of the part. */
static int add_overlaps(struct overlaps *o, const struct wlb_weights *w, const struct wlb_tensor_part *part,
                        struct wlb_error *error)
{
	struct rectangle common[COMMON_MOST];
	int index;
	const struct wlb_stored_block *b = first_block(w, part->name, &index);
	for (; b != NULL; b = next_block(w, index++)) {
		if (find_common(b, part, common) == 0)
			continue;
		if (wlb_grow((void **)&o->list, &o->capacity, o->count + 1, sizeof(*o->list)) < 0)
			return wlb_fail(error, "out of memory for %zu blocks", o->count + 1);
		o->list[o->count++] = (struct overlap){b, part};
	}
	return 0;
}

/* By file, then in the order of parts and of a tensor's blocks. */
static int by_file_and_part(const void *a, const void *b)
{
	const struct overlap *x = a, *y = b;
	if (x->block->file != y->block->file)
		return x->block->file < y->block->file ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

static int read_overlap(struct wlb_weights *w, const struct overlap *o, struct wlb_error *error)
{
	struct rectangle common[COMMON_MOST];
	int count = find_common(o->block, o->part, common);
	for (int i = 0; i < count; i++)
		if (read_rectangle(w, o->block, &common[i], o->part, error) < 0)
			return -1;
	return 0;
}

int wlb_weights_read(struct wlb_weights *w, const struct wlb_tensor_part *parts, int count, struct wlb_error *error)
{
	struct overlaps o = {0};
	int rc = 0;
	for (int i = 0; rc == 0 && i < count; i++)
		rc = add_overlaps(&o, w, &parts[i], error);
	if (rc == 0 && o.count > 0)
		qsort(o.list, o.count, sizeof(*o.list), by_file_and_part);
	for (size_t i = 0; rc == 0 && i < o.count; i++) {
		int file = o.list[i].block->file;
		rc = read_overlap(w, &o.list[i], error);
		if (i + 1 == o.count || o.list[i + 1].block->file != file)
			close_file(&w->files[file]);
	}
	free(o.list);
	return rc;
}
