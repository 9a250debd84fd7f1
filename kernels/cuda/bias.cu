/* Adds biases, and sums their gradients. */
#include "kernels/cuda/columns.cuh"

template <typename element, int count>
__global__ static void add_bias(element *y, int64_t stride, const element *bias, int64_t rows, int64_t width)
{
	const int64_t row = wlb_row_of_thread();
	if (row >= rows)
		return;
	for (int64_t i = threadIdx.x; i < width / count; i += blockDim.x) {
		float values[count], addends[count];
		wlb_load_values<count>(values, y + row * stride, i);
		wlb_load_values<count>(addends, bias, i);
#pragma unroll
		for (int j = 0; j < count; j++)
			values[j] += addends[j];
		wlb_store_values<count>(y + row * stride, i, values);
	}
}

/* parts[part, width] = the sums of the rows of each part. */
template <typename element, int count>
__global__ static void bias_parts(float *parts, const element *d_y, int64_t stride, int64_t rows, int64_t width)
{
	const int64_t part = wlb_row_of_thread(), step = (int64_t)gridDim.x * blockDim.y;
	for (int64_t i = threadIdx.x; i < width / count; i += blockDim.x) {
		float sums[count] = {}, values[count];
		for (int64_t row = part; row < rows; row += step) {
			wlb_load_values<count>(values, d_y + row * stride, i);
#pragma unroll
			for (int j = 0; j < count; j++)
				sums[j] += values[j];
		}
		wlb_store_floats<count>(parts + part * width, i, sums);
	}
}

void wlb_cuda_add_bias(struct wlb_device *device, void *y, int64_t stride, const void *bias, int64_t n, int64_t width)
{
	if (n == 0 || width == 0)
		return;
	wlb_choose_kind(device->compute, {stride, width}, {y, bias}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		wlb_cuda_launch(device, "add_bias", wlb_rows_grid(n, width / kind.count), add_bias<element, kind.count>,
		                (element *)y, stride, (const element *)bias, n, width);
	});
}

/* Parts are most where rows are short: of a row of one pack each thread has a part. */
size_t wlb_cuda_columns_scratch_bytes(int64_t columns)
{
	const int64_t most_of_pack = WLB_PACK<wlb_bf16>, row = (int64_t)WLB_BLOCK * most_of_pack;
	return (size_t)(WLB_COLUMN_BLOCKS_MAX * (columns > row ? columns : row)) * sizeof(float);
}

void wlb_cuda_bias_backward(struct wlb_device *device, void *d_bias, const void *d_y, int64_t stride, int64_t n,
                            int64_t width)
{
	const char *name = "bias_backward";
	if (n == 0 || width == 0)
		return;
	wlb_choose_kinds(device, {stride, width}, {d_y}, [=](auto kind, auto zero) {
		typedef typename decltype(kind)::element element;
		const struct wlb_cuda_grid grid = wlb_columns_grid(n, width / kind.count);
		const int64_t count = wlb_columns_parts(grid);
		float *parts = (float *)wlb_cuda_scratch(device, (size_t)(count * width) * sizeof(float), name);
		if (parts == NULL)
			return;
		wlb_cuda_launch(device, name, grid, bias_parts<element, kind.count>, parts, (const element *)d_y,
		                stride, n, width);
		wlb_queue_add_columns<decltype(zero)>(device, name, d_bias, parts, (int)count, (int)width);
	});
}
