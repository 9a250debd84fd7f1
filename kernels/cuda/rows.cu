/* Gathers rows of a matrix. */
#include "kernels/cuda/launch.cuh"

__global__ static void gather(float *out, int64_t out_stride, const float *x, int64_t x_stride, const int32_t *rows,
                              int64_t n, int64_t width)
{
	WLB_FOR_ELEMENTS(i, n)
	{
		const int64_t at = i / width, column = i % width, row = rows != nullptr ? rows[at] : at;
		out[at * out_stride + column] = row < 0 ? 0.0f : x[row * x_stride + column];
	}
}

void wlb_cuda_gather_rows(struct wlb_device *device, void *out, int64_t out_stride, const void *x, int64_t x_stride,
                          const int32_t *rows, int64_t count, int64_t width)
{
	const int64_t n = count * width;
	if (n == 0)
		return;
	wlb_cuda_launch(device, "gather_rows", {wlb_element_blocks(n), WLB_BLOCK}, gather, (float *)out, out_stride,
	                (const float *)x, x_stride, rows, n, width);
}
