/* Adds, scales and sums the squares of vectors. */
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"

/* The most blocks of the first step of a sum; their number depends on n only. */
static const unsigned MOST_PARTS = 1024;

__global__ static void add(float *y, const float *x, int64_t n)
{
	WLB_FOR_ELEMENTS(i, n)
	y[i] += x[i];
}

__global__ static void scale(float *y, float factor, int64_t n)
{
	WLB_FOR_ELEMENTS(i, n)
	y[i] *= factor;
}

__global__ static void part_squares(double *parts, const float *x, int64_t n)
{
	double sum = 0;
	WLB_FOR_ELEMENTS(i, n)
	sum += (double)x[i] * (double)x[i];
	sum = wlb_block_sum(sum);
	if (threadIdx.x == 0)
		parts[blockIdx.x] = sum;
}

/* Adds the parts to *sum in a fixed order. It is launched as one block. */
__global__ static void add_parts(double *sum, const double *parts, int count)
{
	double mine = 0;
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		mine += parts[i];
	const double all = wlb_block_sum(mine);
	if (threadIdx.x == 0)
		*sum += all;
}

void wlb_cuda_add(struct wlb_device *device, void *y, const void *x, int64_t n)
{
	if (n == 0)
		return;
	wlb_cuda_launch(device, "add", {wlb_element_blocks(n), WLB_BLOCK}, add, (float *)y, (const float *)x, n);
}

void wlb_cuda_scale(struct wlb_device *device, void *y, double factor, int64_t n)
{
	if (n == 0)
		return;
	wlb_cuda_launch(device, "scale", {wlb_element_blocks(n), WLB_BLOCK}, scale, (float *)y, (float)factor, n);
}

void wlb_cuda_sum_squares(struct wlb_device *device, double *sum, const void *x, int64_t n)
{
	if (n == 0)
		return;
	unsigned blocks = wlb_element_blocks(n);
	unsigned count = blocks < MOST_PARTS ? blocks : MOST_PARTS;
	double *parts = (double *)wlb_cuda_scratch(device, count * sizeof(double), "sum_squares");
	if (parts == NULL)
		return;
	wlb_cuda_launch(device, "sum_squares", {count, WLB_BLOCK}, part_squares, parts, (const float *)x, n);
	wlb_cuda_launch(device, "sum_squares", {1, WLB_BLOCK}, add_parts, sum, parts, (int)count);
}
