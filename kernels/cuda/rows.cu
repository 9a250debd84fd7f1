/* Gathers rows of a matrix. */
#include "kernels/cuda/copy_rows.cuh"

void wlb_cuda_gather_rows(struct wlb_device *device, void *out, int64_t out_stride, const void *x, int64_t x_stride,
                          const int32_t *rows, int64_t count, int64_t width)
{
	wlb_copy_rows(device, "gather_rows", out, out_stride, x, x_stride, count, width, {rows, 0, INT64_MAX});
}
