/* Adds, scales and sums the squares of vectors. */
#include "kernels/cuda/check.cuh"
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
	add<<<wlb_element_blocks(n), WLB_BLOCK, 0, wlb_cuda_of(device)->stream>>>((float *)y, (const float *)x, n);
	WLB_CHECK_LAUNCH(device, "add");
}

void wlb_cuda_scale(struct wlb_device *device, void *y, double factor, int64_t n)
{
	if (n == 0)
		return;
	scale<<<wlb_element_blocks(n), WLB_BLOCK, 0, wlb_cuda_of(device)->stream>>>((float *)y, (float)factor, n);
	WLB_CHECK_LAUNCH(device, "scale");
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
	cudaStream_t stream = wlb_cuda_of(device)->stream;
	part_squares<<<count, WLB_BLOCK, 0, stream>>>(parts, (const float *)x, n);
	WLB_CHECK_LAUNCH(device, "sum_squares");
	add_parts<<<1, WLB_BLOCK, 0, stream>>>(sum, parts, (int)count);
	WLB_CHECK_LAUNCH(device, "sum_squares");
}
