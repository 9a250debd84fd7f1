/* Adds, scales and caps vectors, and sums their squares. */
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

/* What an element becomes. */
struct scaled {
	float factor;
	__device__ float operator()(float x) const
	{
		return x * factor;
	}
};

struct capped {
	float cap;
	__device__ float operator()(float x) const
	{
		return cap * tanhf(x / cap);
	}
};

template <typename element, int count, typename change> __global__ static void replace(element *x, int64_t n, change of)
{
	const int64_t packs = n / count, tail = packs * count;
	float values[count], one[1];
	WLB_FOR_ELEMENTS(i, packs)
	{
		wlb_load_values<count>(values, x, i);
#pragma unroll
		for (int j = 0; j < count; j++)
			values[j] = of(values[j]);
		wlb_store_values<count>(x, i, values);
	}
	WLB_FOR_ELEMENTS(i, n - tail)
	{
		wlb_load_values<1>(one, x + tail, i);
		one[0] = of(one[0]);
		wlb_store_values<1>(x + tail, i, one);
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
static void queue_add(struct wlb_device *device, const char *name, enum wlb_dtype dtype, void *y, const void *x,
                      int64_t n)
{
	if (n == 0)
		return;
	wlb_choose_kind(dtype, {}, {y, x}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		const unsigned blocks = wlb_element_blocks((n + kind.count - 1) / kind.count);
		wlb_cuda_launch(device, name, {blocks, WLB_BLOCK}, add<element, kind.count>, (element *)y,
		                (const element *)x, n);
	});
}

void wlb_cuda_add(struct wlb_device *device, void *y, const void *x, int64_t n)
{
	queue_add(device, "add", device->compute, y, x, n);
}

void wlb_cuda_add_gradients(struct wlb_device *device, void *y, const void *x, int64_t n)
{
	queue_add(device, "add_gradients", device->gradients, y, x, n);
}

template <typename change>
static void queue_replace(struct wlb_device *device, const char *name, void *x, int64_t n, change of)
{
	if (n == 0)
		return;
	wlb_choose_kind(device->compute, {}, {x}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		const unsigned blocks = wlb_element_blocks((n + kind.count - 1) / kind.count);
		wlb_cuda_launch(device, name, {blocks, WLB_BLOCK}, replace<element, kind.count, change>, (element *)x,
		                n, of);
	});
}

void wlb_cuda_scale(struct wlb_device *device, void *x, double factor, int64_t n)
{
	queue_replace(device, "scale", x, n, scaled{(float)factor});
}

void wlb_cuda_softcap(struct wlb_device *device, void *x, double cap, int64_t n)
{
	queue_replace(device, "softcap", x, n, capped{(float)cap});
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
