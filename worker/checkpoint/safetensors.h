/*
 * Reads and writes the safetensors file format (github.com/huggingface/safetensors): a little-endian uint64 with the
 * length of the header, the header (a JSON object: tensor name -> dtype, shape, data_offsets; "__metadata__": texts),
 * then the data. Offsets count from the end of the header; together the tensors cover the data without gap or
 * overlap.
 */
#ifndef WORKER_CHECKPOINT_SAFETENSORS_H
#define WORKER_CHECKPOINT_SAFETENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/ops.h"
#include "libwlb/wlb.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/convert.h"

/* One tensor of a file. Its rows are the first dimension and its columns the product of the others; a scalar is 1 x 1.
 * The metadata of shards that wlb-worker wrote say which block of the whole tensor it is, and where the file has one
 * dimension of data alone, which elements of that block they are; a file of another program holds the whole tensor. */
struct wlb_stored_tensor {
	const char *name;
	enum wlb_stored stored;
	const char *dtype_name; /* as the format spells it */
	struct wlb_tensor_block block;
	struct wlb_element_range range; /* that the file has of the block */
	int64_t begin;                  /* bytes into the data, [begin, end) */
	int64_t end;
	bool has_checksum;
	uint64_t checksum; /* of the data, by their places in the file: wlb_safetensors_place */
};

/* Rows [row, row + rows), columns [col, col + cols) of a tensor as a file stores it: row 0 is the file's first. */
struct wlb_stored_range {
	int64_t row;
	int64_t rows;
	int64_t col;
	int64_t cols;
};

struct wlb_safetensors;

/* Opens the file and checks the whole header. Returns NULL with file, field, value and rule otherwise. */
struct wlb_safetensors *wlb_safetensors_open(const char *path, struct wlb_error *error);
/* The same, for a caller to whom the kind of failure matters: returns 0; -1 where the file is missing or wrong;
 * WLB_UNREADABLE (input.h) where it cannot be read now. *file is NULL then. */
int wlb_safetensors_try_open(const char *path, struct wlb_safetensors **file, struct wlb_error *error);
void wlb_safetensors_close(struct wlb_safetensors *file); /* NULL allowed */

int64_t wlb_safetensors_bytes(const struct wlb_safetensors *file); /* of the file */
/* Lists the tensors by name; the file owns the list. Returns their number. */
int wlb_safetensors_tensors(const struct wlb_safetensors *file, const struct wlb_stored_tensor **tensors);
/* Returns NULL when the file has no tensor of that name. */
const struct wlb_stored_tensor *wlb_safetensors_find(const struct wlb_safetensors *file, const char *name);
/* Reads a range and converts it to `dtype`: its row i goes to out + i * stride elements. No other data of the file is
 * read. Adds what was read to *checksum (common/element_checksum.h). */
int wlb_safetensors_read(const struct wlb_safetensors *file, const struct wlb_stored_tensor *tensor,
                         const struct wlb_stored_range *range, enum wlb_dtype dtype, void *out, int64_t stride,
                         uint64_t *checksum, struct wlb_error *error);

/* The same for all elements that the file has of a weight, in their order. */
int wlb_safetensors_read_all(const struct wlb_safetensors *file, const struct wlb_stored_tensor *tensor,
                             enum wlb_dtype dtype, void *out, uint64_t *checksum, struct wlb_error *error);

/* The place of the tensor's first element among those of the file, by which they enter the checksum. */
static inline int64_t wlb_safetensors_place(const struct wlb_stored_tensor *tensor)
{
	int bytes = wlb_stored_bytes(tensor->stored);
	return bytes > 0 ? tensor->begin / bytes : tensor->begin;
}

enum { WLB_DAMAGED = 1 };

/* Reads all data of the tensor. Returns 0 where they have its checksum, or this digest (common/word_digest.h) where the
 * file has no checksum; WLB_DAMAGED where they have another, -1 where the file ends before, WLB_UNREADABLE (input.h)
 * where it cannot be read now. Without either, 0, and nothing is read. */
int wlb_safetensors_verify(const struct wlb_safetensors *file, const struct wlb_stored_tensor *tensor, uint64_t digest,
                           struct wlb_error *error);

/* Returns -1 when the shape or the element type of the part is invalid, or the part is not within the whole tensor. */
int wlb_tensor_part_check(const struct wlb_tensor_part *part, struct wlb_error *error);

/* Writing a file: create -> append, until the data of all parts are written in their order -> finish, or discard at any
 * time. So the data need not be in memory together. */
struct wlb_safetensors_output;
/* Creates the file and writes the header, which needs everything of the parts but their data. On error there is no
 * file, and *output is NULL. */
int wlb_safetensors_create(const char *path, const struct wlb_tensor_part *parts, int count,
                           struct wlb_safetensors_output **output, struct wlb_error *error);
/* Writes the data of the next `count` parts. */
int wlb_safetensors_append(struct wlb_safetensors_output *output, const struct wlb_tensor_part *parts, int count,
                           struct wlb_error *error);
/* As wlb_safetensors_create, for other programs: the header has no checksums. */
int wlb_safetensors_create_plain(const char *path, const struct wlb_tensor_part *parts, int count,
                                 struct wlb_safetensors_output **output, struct wlb_error *error);
/* Writes the next bytes of such a file, which may be any piece of a part's data. */
int wlb_safetensors_append_data(struct wlb_safetensors_output *output, const void *data, size_t bytes,
                                struct wlb_error *error);
/* Syncs and closes the file, and frees the output. On error the file is removed. */
int wlb_safetensors_finish(struct wlb_safetensors_output *output, struct wlb_error *error);
/* Returns the bytes that the file of these parts will have; -1 as wlb_safetensors_create. */
int64_t wlb_safetensors_size(const struct wlb_tensor_part *parts, int count, struct wlb_error *error);
/* Removes the file, and frees the output; NULL allowed. */
void wlb_safetensors_discard(struct wlb_safetensors_output *output);

#endif
