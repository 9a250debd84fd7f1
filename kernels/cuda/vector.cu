/* Adds vectors and sums their squares. */
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/reduce.cuh"

/* The most blocks of the first step of a sum; their number depends on n only. */
static const unsigned PARTS_MAX = 1024;

/* The elements after the last pack are added by the first threads. */
template <typename element, int count> __global__ static void add(element *y, const element *x, int64_t n)
{
	const int64_t packs = n / count, tail = packs * count;
	WLB_FOR_ELEMENTS(i, packs)
	{
		float sum[count], addend[count];
		wlb_load_values<count>(sum, y, i);
		wlb_load_values<count>(addend, x, i);
#pragma unroll
		for (int j = 0; j < count; j++)
			sum[j] += addend[j];
		wlb_store_values<count>(y, i, sum);
	}
	WLB_FOR_ELEMENTS(i, n - tail)
	{
		float sum[1], addend[1];
		wlb_load_values<1>(sum, y + tail, i);
		wlb_load_values<1>(addend, x + tail, i);
		sum[0] += addend[0];
		wlb_store_values<1>(y + tail, i, sum);
	}
}

template <int count> __device__ static inline double squares_of(const float (&values)[count])
{
	double sum = 0;
#pragma unroll
	for (int j = 0; j < count; j++)
		sum += (double)values[j] * (double)values[j];
	return sum;
}

template <typename element, int count> __global__ static void part_squares(double *parts, const element *x, int64_t n)
{
	const int64_t packs = n / count, tail = packs * count;
	double sum = 0;
	float values[count], one[1];
	WLB_FOR_ELEMENTS(i, packs)
	{
		wlb_load_values<count>(values, x, i);
		sum += squares_of(values);
	}
	WLB_FOR_ELEMENTS(i, n - tail)
	{
		wlb_load_values<1>(one, x + tail, i);
		sum += squares_of(one);
	}
	sum = wlb_block_sum(sum);
	if (threadIdx.x == 0)
		parts[blockIdx.x] = sum;
}

cudaError_t wlb_cuda_find_kernel(void)
{
	struct cudaFuncAttributes attributes;
	return cudaFuncGetAttributes(&attributes, (const void *)add<float, 1>);
}

/* Only the addresses decide whether packs are loaded. */
void wlb_cuda_add(struct wlb_device *device, void *y, const void *x, int64_t n)
{
	if (n == 0)
		return;
	wlb_choose_kind(device->compute, {}, {y, x}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		const unsigned blocks = wlb_element_blocks((n + kind.count - 1) / kind.count);
		wlb_cuda_launch(device, "add", {blocks, WLB_BLOCK}, add<element, kind.count>, (element *)y,
		                (const element *)x, n);
	});
}

size_t wlb_cuda_sum_squares_scratch_bytes(void)
{
	return PARTS_MAX * sizeof(double);
}

void wlb_cuda_sum_squares(struct wlb_device *device, double *sum, const void *x, int64_t n)
{
	const char *name = "sum_squares";
	if (n == 0)
		return;
	wlb_choose_kind(device->gradients, {}, {x}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		const unsigned blocks = wlb_element_blocks((n + kind.count - 1) / kind.count);
		const unsigned count = blocks < PARTS_MAX ? blocks : PARTS_MAX;
		double *parts = (double *)wlb_cuda_scratch(device, count * sizeof(double), name);
		if (parts == NULL)
			return;
		wlb_cuda_launch(device, name, {count, WLB_BLOCK}, part_squares<element, kind.count>, parts,
		                (const element *)x, n);
		wlb_cuda_launch(device, name, {1, WLB_BLOCK}, wlb_add_parts<double>, sum, parts, (int)count);
	});
}
