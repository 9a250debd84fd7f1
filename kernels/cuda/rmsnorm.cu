/* Computes RMSNorm and its gradients. */
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"

/* Computes one token in each block. */
__global__ static void forward(float *out, float *rstd, float *sum, const float *x, const float *residual,
                               const float *weight, int64_t width, float epsilon)
{
	const int64_t row = blockIdx.x * width;
	float squares = 0;
	for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
		float value = x[row + i];
		if (residual != nullptr)
			sum[row + i] = value += residual[row + i];
		squares += value * value;
	}
	/* A thread reads the elements of the sum that it has written. */
	const float *of = residual != nullptr ? sum : x;
	const float r = 1.0f / sqrtf(wlb_block_sum(squares) / (float)width + epsilon);
	if (threadIdx.x == 0)
		rstd[blockIdx.x] = r;
	for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
		out[row + i] = of[row + i] * r * weight[i];
}

/* With y = x r w: dx = r (w dy - x r^2 mean(w dy x)). Each block computes one token. */
__global__ static void backward_x(float *d_x, const float *d_out, const float *x, const float *weight,
                                  const float *rstd, int64_t width)
{
	const int64_t row = blockIdx.x * width;
	const float r = rstd[blockIdx.x];
	float products = 0;
	for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
		products += weight[i] * d_out[row + i] * x[row + i];
	const float mean = r * r * wlb_block_sum(products) / (float)width;
	for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
		d_x[row + i] += r * (weight[i] * d_out[row + i] - x[row + i] * mean);
}

/* dw = sum of dy x r over the tokens, in two steps so that its order is fixed: block row y sums the tokens
 * [y * tokens_of_part, ...) of one column a thread, then the parts are added in order. */
__global__ static void backward_weight_parts(float *parts, const float *d_out, const float *x, const float *rstd,
                                             int64_t tokens, int64_t width, int64_t tokens_of_part)
{
	const int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (column >= width)
		return;
	const int64_t begin = blockIdx.y * tokens_of_part;
	const int64_t end = min(begin + tokens_of_part, tokens);
	float sum = 0;
	for (int64_t t = begin; t < end; t++)
		sum += d_out[t * width + column] * x[t * width + column] * rstd[t];
	parts[blockIdx.y * width + column] = sum;
}

__global__ static void add_parts(float *d_weight, const float *parts, int count, int64_t width)
{
	const int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (column >= width)
		return;
	float sum = 0;
	for (int part = 0; part < count; part++)
		sum += parts[part * width + column];
	d_weight[column] += sum;
}

void wlb_cuda_rmsnorm_forward(struct wlb_device *device, void *out, void *rstd, void *sum, const void *x,
                              const void *residual, const void *weight, int64_t tokens, int64_t width, double epsilon)
{
	if (tokens == 0 || width == 0)
		return;
	wlb_cuda_launch(device, "rmsnorm_forward", {(unsigned)tokens, WLB_BLOCK}, forward, (float *)out, (float *)rstd,
	                (float *)sum, (const float *)x, (const float *)residual, (const float *)weight, width,
	                (float)epsilon);
}

void wlb_cuda_rmsnorm_backward(struct wlb_device *device, void *d_x, void *d_weight, const void *d_out, const void *x,
                               const void *weight, const void *rstd, int64_t tokens, int64_t width)
{
	if (tokens == 0 || width == 0)
		return;
	const int64_t most_parts = 128;
	const int64_t tokens_of_part = (tokens + most_parts - 1) / most_parts;
	const int parts = (int)((tokens + tokens_of_part - 1) / tokens_of_part);
	const unsigned columns = (unsigned)((width + WLB_BLOCK - 1) / WLB_BLOCK);
	const char *name = "rmsnorm_backward";
	float *sums = (float *)wlb_cuda_scratch(device, (size_t)parts * (size_t)width * sizeof(float), name);
	if (sums == NULL)
		return;
	wlb_cuda_launch(device, name, {dim3(columns, (unsigned)parts), WLB_BLOCK}, backward_weight_parts, sums,
	                (const float *)d_out, (const float *)x, (const float *)rstd, tokens, width, tokens_of_part);
	wlb_cuda_launch(device, name, {columns, WLB_BLOCK}, add_parts, (float *)d_weight, sums, parts, width);
	wlb_cuda_launch(device, name, {(unsigned)tokens, WLB_BLOCK}, backward_x, (float *)d_x, (const float *)d_out,
	                (const float *)x, (const float *)weight, (const float *)rstd, width);
}
