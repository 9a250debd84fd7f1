/* The block of a tensor that a rank holds or a file stores. */
#ifndef WORKER_MODEL_TENSOR_BLOCK_H
#define WORKER_MODEL_TENSOR_BLOCK_H

#include <stdint.h>

/* Rows [row_start, row_start + rows), columns [col_start, col_start + cols) of a whole tensor [global_rows,
 * global_cols]. A vector is [n, 1]; its `dimensions` are 1. */
struct wlb_tensor_block {
	int dimensions;
	int64_t global_rows;
	int64_t global_cols;
	int64_t row_start;
	int64_t rows;
	int64_t col_start;
	int64_t cols;
};

/* Elements [begin, end) of a block, in the order of its rows. */
struct wlb_element_range {
	int64_t begin;
	int64_t end;
};

/* Whether both are blocks of whole tensors of one shape. */
static inline int wlb_tensor_block_same_whole(const struct wlb_tensor_block *a, const struct wlb_tensor_block *b)
{
	return a->dimensions == b->dimensions && a->global_rows == b->global_rows && a->global_cols == b->global_cols;
}

static inline int64_t wlb_tensor_block_elements(const struct wlb_tensor_block *block)
{
	return block->rows * block->cols;
}

#endif
