/*
 * Copies of rows, by units of 16 bytes or of one element.
 */
#ifndef WLB_CUDA_COPY_ROWS_CUH
#define WLB_CUDA_COPY_ROWS_CUH

#include "kernels/cuda/element.cuh"

/* Where the rows come from: row i of out is the row rows[i] - first of x, or 0 where that is not in [0, count). rows
 * NULL: row i. */
struct wlb_row_source {
	const int32_t *rows;
	int64_t first, count;
};

/* Strides and width are in units. */
template <typename unit>
__global__ static void wlb_copy_rows_kernel(unit *out, int64_t out_stride, const unit *x, int64_t x_stride,
                                            int64_t out_rows, int64_t width, struct wlb_row_source source)
{
	const int64_t i = wlb_row_of_thread();
	if (i >= out_rows)
		return;
	const int64_t row = source.rows == nullptr ? i : source.rows[i] - source.first;
	const bool there = row >= 0 && row < source.count;
	unit *to = out + i * out_stride;
	const unit *from = x + row * x_stride;
	for (int64_t u = threadIdx.x; u < width; u += blockDim.x)
		to[u] = there ? from[u] : unit();
}

/* Queues out[i] = the row that `source` says, for `rows` rows of `width` elements of the device's compute type. */
static inline void wlb_copy_rows(struct wlb_device *device, const char *name, void *out, int64_t out_stride,
                                 const void *x, int64_t x_stride, int64_t rows, int64_t width,
                                 const struct wlb_row_source &source)
{
	if (rows == 0 || width == 0)
		return;
	wlb_choose_kind(device->compute, {out_stride, x_stride, width}, {out, x}, [&](auto kind) {
		typedef typename decltype(kind)::element element;
		typedef typename wlb_pack<element, kind.count>::type unit;
		const int64_t units = width / kind.count;
		wlb_cuda_launch(device, name, wlb_rows_grid(rows, units), wlb_copy_rows_kernel<unit>, (unit *)out,
		                out_stride / kind.count, (const unit *)x, x_stride / kind.count, rows, units, source);
	});
}

#endif
