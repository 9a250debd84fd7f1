/* Computes RMSNorm of groups of columns, and its gradients. */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/reduce.cuh"

/* A group of a row is a line: of an array with rows `stride` apart. */
struct lines {
	int64_t count, width;
	int groups;
	float total, epsilon, addend;
};

__device__ static inline int64_t place_of(const lines &l, int64_t line, int64_t stride)
{
	return line / l.groups * stride + line % l.groups * l.width;
}

__device__ static inline float rstd_of(const lines &l, float squares)
{
	return 1.0f / sqrtf(squares / l.total + l.epsilon);
}

/* Sums one line in each block; weight NULL: 1. */
template <typename element, int count>
__global__ static void group_norm_sums(float *sums, const element *x, int64_t x_stride, const element *d,
                                       int64_t d_stride, const element *weight, lines l)
{
	const element *of_x = x + place_of(l, blockIdx.x, x_stride), *of_d = d + place_of(l, blockIdx.x, d_stride);
	float sum = 0;
	for (int64_t i = threadIdx.x; i < l.width / count; i += blockDim.x) {
		float a[count], b[count], w[count];
		wlb_load_values<count>(a, of_x, i);
		wlb_load_values<count>(b, of_d, i);
		if (weight != nullptr)
			wlb_load_values<count>(w, weight, i);
#pragma unroll
		for (int j = 0; j < count; j++)
			sum += weight != nullptr ? (w[j] + l.addend) * b[j] * a[j] : a[j] * b[j];
	}
	const float all = wlb_block_sum(sum);
	if (threadIdx.x == 0)
		sums[blockIdx.x] = all;
}

template <typename element, int count>
__global__ static void group_norm_forward(element *out, int64_t out_stride, const element *x, int64_t x_stride,
                                          const float *squares, const element *weight, lines l)
{
	const int64_t line = wlb_row_of_thread();
	if (line >= l.count)
		return;
	const float r = rstd_of(l, squares[line]);
	const element *from = x + place_of(l, line, x_stride);
	for (int64_t i = threadIdx.x; i < l.width / count; i += blockDim.x) {
		float values[count], w[count];
		wlb_load_values<count>(values, from, i);
		wlb_load_values<count>(w, weight, i);
#pragma unroll
		for (int j = 0; j < count; j++)
			values[j] = values[j] * r * (w[j] + l.addend);
		wlb_store_values<count>(out + place_of(l, line, out_stride), i, values);
	}
}

/* With w = weight + addend and y = x r w: dx = r (w dy - x r^2 sum(w dy x) / total), and parts[part, width] = the sums
 * of dy x r of the lines of each part. In place: a thread has read what it writes. */
template <typename element, int count>
__global__ static void group_norm_backward(element *d, int64_t d_stride, float *parts, const element *x,
                                           int64_t x_stride, const float *squares, const float *products,
                                           const element *weight, lines l)
{
	const int64_t part = wlb_row_of_thread(), step = (int64_t)gridDim.x * blockDim.y;
	for (int64_t i = threadIdx.x; i < l.width / count; i += blockDim.x) {
		float sums[count] = {}, w[count];
		wlb_load_values<count>(w, weight, i);
		for (int64_t line = part; line < l.count; line += step) {
			const float r = rstd_of(l, squares[line]), mean = r * r * products[line] / l.total;
			element *of_d = d + place_of(l, line, d_stride);
			float a[count], b[count];
			wlb_load_values<count>(a, x + place_of(l, line, x_stride), i);
			wlb_load_values<count>(b, of_d, i);
#pragma unroll
			for (int j = 0; j < count; j++) {
				sums[j] += b[j] * a[j] * r;
				b[j] = r * ((w[j] + l.addend) * b[j] - a[j] * mean);
			}
			wlb_store_values<count>(of_d, i, b);
		}
		wlb_store_floats<count>(parts + part * l.width, i, sums);
	}
}

/* -- launches -- */

static lines lines_of(const struct wlb_norm_groups *g)
{
	return {g->rows * g->groups, g->width, g->groups, (float)g->total, (float)g->epsilon, (float)g->weight_addend};
}

void wlb_cuda_group_norm_sums(struct wlb_device *device, void *sums, const void *x, int64_t x_stride, const void *d,
                              int64_t d_stride, const void *weight, const struct wlb_norm_groups *g)
{
	const lines l = lines_of(g);
	if (l.count == 0 || l.width == 0)
		return;
	wlb_choose_kind(device->compute, {x_stride, d_stride, l.width}, {x, d, weight}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		wlb_cuda_launch(device, "group_norm_sums",
		                {(unsigned)l.count, wlb_row_threads(l.width / kind.count, 1, WLB_BLOCK)},
		                group_norm_sums<element, kind.count>, (float *)sums, (const element *)x, x_stride,
		                (const element *)d, d_stride, (const element *)weight, l);
	});
}

void wlb_cuda_group_norm_forward(struct wlb_device *device, void *out, int64_t out_stride, const void *x,
                                 int64_t x_stride, const void *squares, const void *weight,
                                 const struct wlb_norm_groups *g)
{
	const lines l = lines_of(g);
	if (l.count == 0 || l.width == 0)
		return;
	wlb_choose_kind(device->compute, {out_stride, x_stride, l.width}, {out, x, weight}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		wlb_cuda_launch(device, "group_norm_forward", wlb_rows_grid(l.count, l.width / kind.count),
		                group_norm_forward<element, kind.count>, (element *)out, out_stride, (const element *)x,
		                x_stride, (const float *)squares, (const element *)weight, l);
	});
}

void wlb_cuda_group_norm_backward(struct wlb_device *device, void *d, int64_t d_stride, void *d_weight, const void *x,
                                  int64_t x_stride, const void *squares, const void *products, const void *weight,
                                  const struct wlb_norm_groups *g)
{
	const char *name = "group_norm_backward";
	const lines l = lines_of(g);
	if (l.count == 0 || l.width == 0)
		return;
	wlb_choose_kinds(device, {d_stride, x_stride, l.width}, {d, x, weight}, [=](auto kind, auto zero) {
		typedef typename decltype(kind)::element element;
		const struct wlb_cuda_grid grid = wlb_columns_grid(l.count, l.width / kind.count);
		const int64_t count = wlb_columns_parts(grid);
		float *parts = (float *)wlb_cuda_scratch(device, (size_t)(count * l.width) * sizeof(float), name);
		if (parts == NULL)
			return;
		wlb_cuda_launch(device, name, grid, group_norm_backward<element, kind.count>, (element *)d, d_stride,
		                parts, (const element *)x, x_stride, (const float *)squares, (const float *)products,
		                (const element *)weight, l);
		wlb_queue_add_columns<decltype(zero)>(device, name, d_weight, parts, (int)count, (int)l.width);
	});
}
