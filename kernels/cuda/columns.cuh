/*
 * Sums of columns, in a fixed order: each part of the rows has a sum of every column, and the parts are added.
 */
#ifndef WLB_CUDA_COLUMNS_CUH
#define WLB_CUDA_COLUMNS_CUH

#include "kernels/cuda/element.cuh"

/* The threads of x have neighbouring columns, those of y different parts. */
static constexpr unsigned WLB_ADD_X = 32, WLB_ADD_Y = 32;

template <typename gradient>
__global__ static void __launch_bounds__(WLB_ADD_X *WLB_ADD_Y)
	wlb_add_columns(gradient *d_weight, const float *parts, int count_of_parts, int width)
{
	static __shared__ float sums[WLB_ADD_Y][WLB_ADD_X];
	const int column = (int)(blockIdx.x * WLB_ADD_X + threadIdx.x);
	float sum = 0;
	if (column < width)
#pragma unroll 8
		for (int part = (int)threadIdx.y; part < count_of_parts; part += WLB_ADD_Y)
			sum += parts[(int64_t)part * width + column];
	sums[threadIdx.y][threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y != 0 || column >= width)
		return;
	for (unsigned y = 1; y < WLB_ADD_Y; y++)
		sum += sums[y][threadIdx.x];
	const float all[1] = {sum};
	wlb_add_gradients<1>(d_weight, column, all);
}

/* Queues the sum of parts[parts, width], which is added to gradients of weights, d[width]. */
template <typename gradient>
static inline void wlb_queue_add_columns(struct wlb_device *device, const char *name, void *d, const float *parts,
                                         int count_of_parts, int width)
{
	wlb_cuda_launch(device, name, {(unsigned)((width + WLB_ADD_X - 1) / WLB_ADD_X), dim3(WLB_ADD_X, WLB_ADD_Y)},
	                wlb_add_columns<gradient>, (gradient *)d, parts, count_of_parts, width);
}

/* The most blocks of rows; a block has several parts where rows are short. */
static const unsigned WLB_COLUMN_BLOCKS_MAX = 128;

/* Returns a grid whose threads of x have neighbouring packs, and those of y different rows: a part for each y of each
 * block. */
static inline struct wlb_cuda_grid wlb_columns_grid(int64_t rows, int64_t packs)
{
	struct wlb_cuda_grid grid = wlb_rows_grid(rows, packs);
	grid.blocks.x = grid.blocks.x < WLB_COLUMN_BLOCKS_MAX ? grid.blocks.x : WLB_COLUMN_BLOCKS_MAX;
	return grid;
}

static inline int64_t wlb_columns_parts(const struct wlb_cuda_grid &grid)
{
	return (int64_t)grid.blocks.x * grid.threads.y;
}

#endif
