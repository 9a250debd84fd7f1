/* Computes RMSNorm and its gradients. */
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/reduce.cuh"

/* Packs of a row that a thread keeps in registers from the sum over the row to the results; it loads further ones
 * again. */
static constexpr int HELD_FORWARD = 8, HELD_BACKWARD = 2;

static const unsigned MOST_FORWARD = 512, MOST_BACKWARD = 1024; /* threads of a block */

/* Sums of the weight's gradient, each over a part of the tokens. */
static const int64_t MOST_PARTS = 256;

/* The largest sums of a part that a block keeps in shared memory, so that two blocks fit a multiprocessor; wider ones
 * are in device memory. */
static const size_t MOST_SHARED_BYTES = 96 * 1024;

/* -- forward -- */

/* Returns the sum of the squares of a pack of x + residual, rounded as it is stored; residual NULL: of x. */
template <int count, typename element>
__device__ static inline float take_pack(wlb_pack<element, count> &pack, element *sum, const element *x,
                                         const element *residual, int64_t i)
{
	float values[count], addends[count], squares = 0;
	pack = wlb_load<count>(x, i);
	wlb_values(values, pack);
	if (residual != nullptr) {
		wlb_load_values<count>(addends, residual, i);
#pragma unroll
		for (int j = 0; j < count; j++)
			values[j] += addends[j];
		wlb_round(pack, values);
		wlb_store<count>(sum, i, pack);
		wlb_values(values, pack);
	}
#pragma unroll
	for (int j = 0; j < count; j++)
		squares += values[j] * values[j];
	return squares;
}

template <int count, typename element>
__device__ static inline void put_pack(element *out, const wlb_pack<element, count> &pack, const element *weight,
                                       float r, int64_t i)
{
	float values[count], weights[count];
	wlb_values(values, pack);
	wlb_load_values<count>(weights, weight, i);
#pragma unroll
	for (int j = 0; j < count; j++)
		values[j] = values[j] * r * weights[j];
	wlb_store_values<count>(out, i, values);
}

/* Computes one token in each block. `sum` may be x or residual: a thread has read what it writes. */
template <typename element, int count>
__global__ static void __launch_bounds__(MOST_FORWARD)
	forward(element *out, float *rstd, element *sum, const element *x, const element *residual,
                const element *weight, int64_t width, float epsilon)
{
	const int64_t row = blockIdx.x * width, packs = width / count, next = HELD_FORWARD * blockDim.x + threadIdx.x;
	out += row;
	x += row;
	if (residual != nullptr) {
		residual += row;
		sum += row;
	}
	wlb_pack<element, count> held[HELD_FORWARD], other;
	float squares = 0;
#pragma unroll
	for (int h = 0; h < HELD_FORWARD; h++)
		if (threadIdx.x + h * blockDim.x < packs)
			squares += take_pack<count>(held[h], sum, x, residual, threadIdx.x + h * blockDim.x);
	for (int64_t i = next; i < packs; i += blockDim.x)
		squares += take_pack<count>(other, sum, x, residual, i);
	const float r = 1.0f / sqrtf(wlb_block_sum(squares) / (float)width + epsilon);
	if (threadIdx.x == 0)
		rstd[blockIdx.x] = r;
#pragma unroll
	for (int h = 0; h < HELD_FORWARD; h++)
		if (threadIdx.x + h * blockDim.x < packs)
			put_pack<count>(out, held[h], weight, r, threadIdx.x + h * blockDim.x);
	for (int64_t i = next; i < packs; i += blockDim.x)
		put_pack<count>(out, wlb_load<count>(residual != nullptr ? sum : x, i), weight, r, i);
}

/* -- backward: with y = x r w, dx = r (w dy - x r^2 mean(w dy x)) and dw = sum over the tokens of dy x r -- */

/* A row of the arrays. */
template <typename element> struct gradient_row {
	element *d_x;
	const element *d_out, *x, *weight;
	float r;
};

/* Adds dy x r of pack i to sums[j * packs + i], where j is the element of the pack: neighbouring threads have
 * neighbouring sums. Returns the sum of w dy x over the pack. */
template <int count, typename element>
__device__ static inline float add_weight_gradient(float *sums, const wlb_pack<element, count> &x_pack,
                                                   const wlb_pack<element, count> &d_pack,
                                                   const gradient_row<element> &row, int i, int packs)
{
	float x[count], d[count], weight[count], products = 0;
	wlb_values(x, x_pack);
	wlb_values(d, d_pack);
	wlb_load_values<count>(weight, row.weight, i);
#pragma unroll
	for (int j = 0; j < count; j++) {
		sums[j * packs + i] += d[j] * x[j] * row.r;
		products += weight[j] * d[j] * x[j];
	}
	return products;
}

template <int count, typename element>
__device__ static inline void add_x_gradient(const wlb_pack<element, count> &x_pack,
                                             const wlb_pack<element, count> &d_pack, const gradient_row<element> &row,
                                             float mean, int i)
{
	float x[count], d[count], weight[count], d_x[count];
	wlb_values(x, x_pack);
	wlb_values(d, d_pack);
	wlb_load_values<count>(weight, row.weight, i);
	wlb_load_values<count>(d_x, row.d_x, i);
#pragma unroll
	for (int j = 0; j < count; j++)
		d_x[j] += row.r * (weight[j] * d[j] - x[j] * mean);
	wlb_store_values<count>(row.d_x, i, d_x);
}

template <typename element, int count>
__device__ static inline void backward_row(float *sums, const gradient_row<element> &row, int width)
{
	const int packs = width / count, step = (int)blockDim.x, first = (int)threadIdx.x;
	wlb_pack<element, count> x[HELD_BACKWARD], d[HELD_BACKWARD];
	float products = 0;
#pragma unroll
	for (int h = 0; h < HELD_BACKWARD; h++) {
		const int i = first + h * step;
		if (i < packs) {
			x[h] = wlb_load<count>(row.x, i);
			d[h] = wlb_load<count>(row.d_out, i);
			products += add_weight_gradient<count>(sums, x[h], d[h], row, i, packs);
		}
	}
	for (int i = first + HELD_BACKWARD * step; i < packs; i += step)
		products += add_weight_gradient<count>(sums, wlb_load<count>(row.x, i), wlb_load<count>(row.d_out, i),
		                                       row, i, packs);
	const float mean = row.r * row.r * wlb_block_sum(products) / (float)width;
#pragma unroll
	for (int h = 0; h < HELD_BACKWARD; h++)
		if (first + h * step < packs)
			add_x_gradient<count>(x[h], d[h], row, mean, first + h * step);
	for (int i = first + HELD_BACKWARD * step; i < packs; i += step)
		add_x_gradient<count>(wlb_load<count>(row.x, i), wlb_load<count>(row.d_out, i), row, mean, i);
}

/* Block b computes the tokens [b * tokens_of_part, ...) and sums their weight gradients in parts[b, width]. A thread
 * computes the same columns of every token, so its sums need no barrier. */
template <typename element, int count, bool in_shared>
__global__ static void __launch_bounds__(MOST_BACKWARD)
	backward(element *d_x, float *parts, const element *d_out, const element *x, const element *weight,
                 const float *rstd, int64_t tokens, int width, int64_t tokens_of_part)
{
	const int packs = width / count;
	const int64_t begin = blockIdx.x * tokens_of_part;
	const int64_t end = min(begin + tokens_of_part, tokens);
	float *part = parts + (int64_t)blockIdx.x * width, *sums = in_shared ? (float *)wlb_dynamic_shared : part;
	for (int i = (int)threadIdx.x; i < packs; i += (int)blockDim.x)
		for (int j = 0; j < count; j++)
			sums[j * packs + i] = 0;
	for (int64_t t = begin; t < end; t++) {
		const int64_t at = t * width;
		const gradient_row<element> row = {d_x + at, d_out + at, x + at, weight, rstd[t]};
		backward_row<element, count>(sums, row, width);
	}
	if (in_shared)
		for (int i = (int)threadIdx.x; i < packs; i += (int)blockDim.x)
			for (int j = 0; j < count; j++)
				part[j * packs + i] = sums[j * packs + i];
}

/* The threads of x have neighbouring sums, those of y different parts. Sum p is of the column
 * p % packs * count + p / packs. */
static constexpr unsigned ADD_X = 32, ADD_Y = 8;

template <typename gradient>
__global__ static void add_parts(gradient *d_weight, const float *parts, int count_of_parts, int width, int count)
{
	static __shared__ float sums[ADD_Y][ADD_X];
	const int p = (int)(blockIdx.x * ADD_X + threadIdx.x), packs = width / count;
	float sum = 0;
	if (p < width)
		for (int part = (int)threadIdx.y; part < count_of_parts; part += ADD_Y)
			sum += parts[(int64_t)part * width + p];
	sums[threadIdx.y][threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y != 0 || p >= width)
		return;
	for (unsigned y = 1; y < ADD_Y; y++)
		sum += sums[y][threadIdx.x];
	const float all[1] = {sum};
	wlb_add_gradients<1>(d_weight, p % packs * count + p / packs, all);
}

/* -- launches -- */

void wlb_cuda_rmsnorm_forward(struct wlb_device *device, void *out, void *rstd, void *sum, const void *x,
                              const void *residual, const void *weight, int64_t tokens, int64_t width, double epsilon)
{
	if (tokens == 0 || width == 0)
		return;
	const void *written = residual != NULL ? sum : NULL;
	wlb_choose_kind(device->compute, {width}, {out, written, x, residual, weight}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		const unsigned threads = wlb_row_threads(width / kind.count, 2, MOST_FORWARD);
		wlb_cuda_launch(device, "rmsnorm_forward", {(unsigned)tokens, threads}, forward<element, kind.count>,
		                (element *)out, (float *)rstd, (element *)sum, (const element *)x,
		                (const element *)residual, (const element *)weight, width, (float)epsilon);
	});
}

/* How the tokens are divided. */
struct parts_of_tokens {
	int64_t tokens_of_part;
	int64_t count;
};

static struct parts_of_tokens divide(int64_t tokens)
{
	const int64_t tokens_of_part = (tokens + MOST_PARTS - 1) / MOST_PARTS;
	return {tokens_of_part, (tokens + tokens_of_part - 1) / tokens_of_part};
}

/* A row of sums for each part; few tokens may have more parts than more of them. */
size_t wlb_cuda_rmsnorm_scratch_bytes(int64_t rows, int64_t width)
{
	return (size_t)((rows < MOST_PARTS ? rows : MOST_PARTS) * width) * sizeof(float);
}

template <typename... parameters>
static int allow_shared(struct wlb_device *device, const char *name, void (*kernel)(parameters...))
{
	return wlb_cuda_check(
		device,
		cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)MOST_SHARED_BYTES),
		name);
}

void wlb_cuda_rmsnorm_backward(struct wlb_device *device, void *d_x, void *d_weight, const void *d_out, const void *x,
                               const void *weight, const void *rstd, int64_t tokens, int64_t width)
{
	if (tokens == 0 || width == 0)
		return;
	const char *name = "rmsnorm_backward";
	const struct parts_of_tokens parts = divide(tokens);
	const size_t sums_bytes = (size_t)width * sizeof(float);
	float *sums = (float *)wlb_cuda_scratch(device, (size_t)parts.count * sums_bytes, name);
	if (sums == NULL)
		return;
	wlb_choose_kinds(device, {width}, {d_x, d_out, x, weight}, [=](auto kind, auto zero) {
		typedef typename decltype(kind)::element element;
		typedef decltype(zero) gradient;
		const bool in_shared = sums_bytes <= MOST_SHARED_BYTES;
		auto *kernel = in_shared ? backward<element, kind.count, true> : backward<element, kind.count, false>;
		if (in_shared && !allow_shared(device, name, kernel))
			return;
		const unsigned threads = wlb_row_threads(width / kind.count, 1, MOST_BACKWARD);
		wlb_cuda_launch(device, name, {(unsigned)parts.count, threads, in_shared ? sums_bytes : 0}, kernel,
		                (element *)d_x, sums, (const element *)d_out, (const element *)x,
		                (const element *)weight, (const float *)rstd, tokens, (int)width, parts.tokens_of_part);
		wlb_cuda_launch(device, name, {(unsigned)((width + ADD_X - 1) / ADD_X), dim3(ADD_X, ADD_Y)},
		                add_parts<gradient>, (gradient *)d_weight, sums, (int)parts.count, (int)width,
		                kind.count + 0);
	});
}
