/* Gathers rows of a matrix. */
#include "kernels/cuda/launch.cuh"

__global__ static void gather(float *out, const float *x, const int32_t *rows, int64_t n, int64_t width)
{
	WLB_FOR_ELEMENTS(i, n)
	{
		const int32_t row = rows[i / width];
		out[i] = row < 0 ? 0.0f : x[row * width + i % width];
	}
}

void wlb_cuda_gather_rows(struct wlb_device *device, void *out, const void *x, const int32_t *rows, int64_t count,
                          int64_t width)
{
	const int64_t n = count * width;
	if (n == 0)
		return;
	wlb_cuda_launch(device, "gather_rows", {wlb_element_blocks(n), WLB_BLOCK}, gather, (float *)out,
	                (const float *)x, rows, n, width);
}
