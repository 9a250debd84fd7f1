/* Computes RMSNorm and its gradients. */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/reduce.cuh"

/* Packs of a row that a thread keeps in registers from the sum over the row to the results; it loads further ones
 * again. */
static constexpr int FORWARD_PACKS = 8;

static const unsigned FORWARD_THREADS_MAX = 512, BACKWARD_THREADS_MAX = 1024; /* threads of a block */

/* Sums of the weight's gradient, each over a part of the tokens. */
static const int64_t PARTS_MAX = 256;

/* The packs of a row times the rows of which a block has x, d_out and d_x in shared memory: 96 KB at most, so that two
 * blocks fit a multiprocessor of Hopper, and one fits those that have least. */
static constexpr int SHARED_PACKS_MAX = 2048;
static const size_t SHARED_BYTES_MAX = 3 * 16 * SHARED_PACKS_MAX;

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
                                       float addend, float r, int64_t i)
{
	float values[count], weights[count];
	wlb_values(values, pack);
	wlb_load_values<count>(weights, weight, i);
#pragma unroll
	for (int j = 0; j < count; j++)
		values[j] = values[j] * r * (weights[j] + addend);
	wlb_store_values<count>(out, i, values);
}

/* Computes one token in each block. `sum` may be x or residual: a thread has read what it writes. */
template <typename element, int count>
__global__ static void __launch_bounds__(FORWARD_THREADS_MAX)
	rmsnorm_forward(element *out, float *rstd, element *sum, const element *x, const element *residual,
                        const element *weight, float addend, int64_t width, float epsilon)
{
	const int64_t row = blockIdx.x * width, packs = width / count, next = FORWARD_PACKS * blockDim.x + threadIdx.x;
	out += row;
	x += row;
	if (residual != nullptr) {
		residual += row;
		sum += row;
	}
	wlb_pack<element, count> kept[FORWARD_PACKS], other;
	float squares = 0;
#pragma unroll
	for (int h = 0; h < FORWARD_PACKS; h++)
		if (threadIdx.x + h * blockDim.x < packs)
			squares += take_pack<count>(kept[h], sum, x, residual, threadIdx.x + h * blockDim.x);
	for (int64_t i = next; i < packs; i += blockDim.x)
		squares += take_pack<count>(other, sum, x, residual, i);
	const float r = 1.0f / sqrtf(wlb_block_sum(squares) / (float)width + epsilon);
	if (threadIdx.x == 0)
		rstd[blockIdx.x] = r;
#pragma unroll
	for (int h = 0; h < FORWARD_PACKS; h++)
		if (threadIdx.x + h * blockDim.x < packs)
			put_pack<count>(out, kept[h], weight, addend, r, threadIdx.x + h * blockDim.x);
	for (int64_t i = next; i < packs; i += blockDim.x)
		put_pack<count>(out, wlb_load<count>(residual != nullptr ? sum : x, i), weight, addend, r, i);
}

/* -- backward: with w = weight + addend and y = x r w, dx = r (w dy - x r^2 mean(w dy x)) and dw = sum over the tokens
 * of dy x r -- */

/* Adds dy x r of a pack to `sums`. Returns the sum of w dy x over the pack. */
template <int count, typename element>
__device__ static inline float add_weight_gradient(float (&sums)[count], const wlb_pack<element, count> &x_pack,
                                                   const wlb_pack<element, count> &d_pack,
                                                   const wlb_pack<element, count> &weight_pack, float addend, float r)
{
	float x[count], d[count], weight[count], products = 0;
	wlb_values(x, x_pack);
	wlb_values(d, d_pack);
	wlb_values(weight, weight_pack);
#pragma unroll
	for (int j = 0; j < count; j++) {
		sums[j] += d[j] * x[j] * r;
		products += (weight[j] + addend) * d[j] * x[j];
	}
	return products;
}

/* Stores d_x + r (w dy - x mean) as pack i, where d_x is what the pack held. */
template <int count, typename element>
__device__ static inline void
add_x_gradient(element *to, int i, const wlb_pack<element, count> &d_x_pack, const wlb_pack<element, count> &x_pack,
               const wlb_pack<element, count> &d_pack, const wlb_pack<element, count> &weight_pack, float addend,
               float r, float mean)
{
	float x[count], d[count], weight[count], d_x[count];
	wlb_values(x, x_pack);
	wlb_values(d, d_pack);
	wlb_values(weight, weight_pack);
	wlb_values(d_x, d_x_pack);
#pragma unroll
	for (int j = 0; j < count; j++)
		d_x[j] += r * ((weight[j] + addend) * d[j] - x[j] * mean);
	wlb_store_values<count>(to, i, d_x);
}

/* What both kernels compute: block b the tokens b, b + blocks, ..., whose weight gradients it sums in parts[b, width]:
 * what all blocks read at a time lies together. A thread computes the same columns of every token, so its sums need no
 * barrier. */
template <typename element> struct gradients {
	element *d_x;
	float *parts;
	const element *d_out, *x, *weight;
	const float *rstd;
	int64_t tokens;
	int width;
	float addend;
};

/* Starts copies of the thread's packs of a row of x, d_out and d_x to `slot`, as one group; an empty one where there
 * is no such row. */
template <int count, typename element>
__device__ static inline void fetch_row(element *slot, const gradients<element> &g, int64_t row)
{
	if (row < g.tokens)
		for (int i = (int)threadIdx.x * count; i < g.width; i += (int)blockDim.x * count) {
			wlb_cp_async(slot + i, g.x + row * g.width + i, true);
			wlb_cp_async(slot + g.width + i, g.d_out + row * g.width + i, true);
			wlb_cp_async(slot + 2 * g.width + i, g.d_x + row * g.width + i, true);
		}
	wlb_cp_async_commit();
}

/* Computes the row in `slot`: a thread reads only what it has copied there itself. */
template <int thread_packs, int count, typename element>
__device__ static inline void backward_row(float (&sums)[thread_packs][count], const element *slot,
                                           const wlb_pack<element, count> (&weight)[thread_packs], float addend,
                                           float r, element *d_x, int width, float *of_warp)
{
	const element *x = slot, *d_out = slot + width, *before = slot + 2 * width;
	float products = 0;
#pragma unroll
	for (int h = 0; h < thread_packs; h++) {
		const int i = (int)(threadIdx.x + h * blockDim.x);
		if (i < width / count)
			products += add_weight_gradient<count>(sums[h], wlb_load<count>(x, i),
			                                       wlb_load<count>(d_out, i), weight[h], addend, r);
	}
	const float mean = r * r * wlb_block_sum_in(of_warp, products) / (float)width;
#pragma unroll
	for (int h = 0; h < thread_packs; h++) {
		const int i = (int)(threadIdx.x + h * blockDim.x);
		if (i < width / count)
			add_x_gradient<count>(d_x, i, wlb_load<count>(before, i), wlb_load<count>(x, i),
			                      wlb_load<count>(d_out, i), weight[h], addend, r, mean);
	}
}

/* For rows of at most `thread_packs` packs a thread. The `slots` next rows are under way while one is computed: a block
 * waits at a barrier in every row, so that loads of the row alone would leave the memory idle. */
template <typename element, int count, int slots, int thread_packs>
__global__ static void __launch_bounds__(BACKWARD_THREADS_MAX) rmsnorm_backward(gradients<element> g)
{
	static __shared__ float of_warp[2][BACKWARD_THREADS_MAX / 32]; /* of even rows and of odd ones */
	/* Two packs a thread leave no register for the rstd of the next row. */
	constexpr bool is_ahead = thread_packs == 1;
	const int packs = g.width / count, step = (int)blockDim.x, first = (int)threadIdx.x, slot_size = 3 * g.width;
	element *shared = (element *)wlb_dynamic_shared;
	float sums[thread_packs][count] = {};
	wlb_pack<element, count> weight[thread_packs] = {};
	for (int s = 0; s < slots; s++)
		fetch_row<count>(shared + s * slot_size, g, blockIdx.x + s * (int64_t)gridDim.x);
#pragma unroll
	for (int h = 0; h < thread_packs; h++)
		if (first + h * step < packs)
			weight[h] = wlb_load<count>(g.weight, first + h * step);
	float r = g.rstd[blockIdx.x];
	int row = 0;
	for (int64_t t = blockIdx.x; t < g.tokens; t += gridDim.x, row++) {
		element *slot = shared + row % slots * slot_size;
		const float next = g.rstd[is_ahead ? min(t + gridDim.x, g.tokens - 1) : t];
		wlb_cp_async_wait<slots - 1>();
		backward_row<thread_packs, count>(sums, slot, weight, g.addend, is_ahead ? r : next,
		                                  g.d_x + t * g.width, g.width, of_warp[row & 1]);
		fetch_row<count>(slot, g, t + slots * (int64_t)gridDim.x);
		r = next;
	}
	float *part = g.parts + (int64_t)blockIdx.x * g.width;
#pragma unroll
	for (int h = 0; h < thread_packs; h++)
		if (first + h * step < packs)
			wlb_store_floats<count>(part, first + h * step, sums[h]);
}

/* For rows of any width and address: the sums are in device memory, and rows are loaded twice. The compiler is told of
 * one block on a multiprocessor, since for two it would not keep everything in registers. */
template <typename element, int count>
__global__ static void __launch_bounds__(BACKWARD_THREADS_MAX, 1) rmsnorm_backward_of_any(gradients<element> g)
{
	const int packs = g.width / count, step = (int)blockDim.x, first = (int)threadIdx.x;
	float *part = g.parts + (int64_t)blockIdx.x * g.width, sums[count] = {};
	for (int i = first; i < packs; i += step)
		wlb_store_floats<count>(part, i, sums);
	for (int64_t t = blockIdx.x; t < g.tokens; t += gridDim.x) {
		const element *x = g.x + t * g.width, *d = g.d_out + t * g.width;
		element *d_x = g.d_x + t * g.width;
		const float r = g.rstd[t];
		float products = 0;
		for (int i = first; i < packs; i += step) {
			wlb_load_floats<count>(sums, part, i);
			products += add_weight_gradient<count>(sums, wlb_load<count>(x, i), wlb_load<count>(d, i),
			                                       wlb_load<count>(g.weight, i), g.addend, r);
			wlb_store_floats<count>(part, i, sums);
		}
		const float mean = r * r * wlb_block_sum(products) / (float)g.width;
		for (int i = first; i < packs; i += step)
			add_x_gradient<count>(d_x, i, wlb_load<count>(d_x, i), wlb_load<count>(x, i),
			                      wlb_load<count>(d, i), wlb_load<count>(g.weight, i), g.addend, r, mean);
	}
}

/* -- launches -- */

void wlb_cuda_rmsnorm_forward(struct wlb_device *device, void *out, void *rstd, void *sum, const void *x,
                              const void *residual, const void *weight, double addend, int64_t tokens, int64_t width,
                              double epsilon)
{
	if (tokens == 0 || width == 0)
		return;
	const void *written = residual != NULL ? sum : NULL;
	wlb_choose_kind(device->compute, {width}, {out, written, x, residual, weight}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		const unsigned threads = wlb_row_threads(width / kind.count, 2, FORWARD_THREADS_MAX);
		wlb_cuda_launch(device, "rmsnorm_forward", {(unsigned)tokens, threads},
		                rmsnorm_forward<element, kind.count>, (element *)out, (float *)rstd, (element *)sum,
		                (const element *)x, (const element *)residual, (const element *)weight, (float)addend,
		                width, (float)epsilon);
	});
}

/* How many parts the tokens have: the fewest of which the largest is as small as with PARTS_MAX. */
static int64_t count_parts(int64_t tokens)
{
	const int64_t tokens_of_part = (tokens + PARTS_MAX - 1) / PARTS_MAX;
	return (tokens + tokens_of_part - 1) / tokens_of_part;
}

/* A row of sums for each part; few tokens may have more parts than more of them. */
size_t wlb_cuda_rmsnorm_scratch_bytes(int64_t rows, int64_t width)
{
	return (size_t)((rows < PARTS_MAX ? rows : PARTS_MAX) * width) * sizeof(float);
}

/* Queues the kernel that computes rows of such a width at such addresses. */
template <typename kind>
static void queue_backward(struct wlb_device *device, const char *name, const gradients<typename kind::element> &g,
                           int64_t parts)
{
	typedef typename kind::element element;
	const int packs = g.width / kind::count;
	struct wlb_cuda_grid grid = {(unsigned)parts, wlb_row_threads(packs, 1, BACKWARD_THREADS_MAX)};
	void (*kernel)(gradients<element>) = rmsnorm_backward_of_any<element, kind::count>;
	if constexpr (kind::count > 1) {
		const int slots = packs <= SHARED_PACKS_MAX / 4 ? 4 : packs <= SHARED_PACKS_MAX / 2 ? 2 : 1;
		if (packs <= SHARED_PACKS_MAX) {
			kernel = slots == 4   ? rmsnorm_backward<element, kind::count, 4, 1>
			         : slots == 2 ? rmsnorm_backward<element, kind::count, 2, 1>
			                      : rmsnorm_backward<element, kind::count, 1, 2>;
			grid.shared_bytes = (size_t)(slots * packs) * 3 * 16;
			if (!wlb_cuda_check(device,
			                    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
			                                         (int)SHARED_BYTES_MAX),
			                    name))
				return;
		}
	}
	wlb_cuda_launch(device, name, grid, kernel, g);
}

void wlb_cuda_rmsnorm_backward(struct wlb_device *device, void *d_x, void *d_weight, const void *d_out, const void *x,
                               const void *weight, double addend, const void *rstd, int64_t tokens, int64_t width)
{
	if (tokens == 0 || width == 0)
		return;
	const char *name = "rmsnorm_backward";
	const int64_t parts = count_parts(tokens);
	float *sums = (float *)wlb_cuda_scratch(device, (size_t)(parts * width) * sizeof(float), name);
	if (sums == NULL)
		return;
	wlb_choose_kinds(device, {width}, {d_x, d_out, x, weight}, [=](auto kind, auto zero) {
		typedef typename decltype(kind)::element element;
		typedef decltype(zero) gradient;
		const gradients<element> g = {(element *)d_x,
		                              sums,
		                              (const element *)d_out,
		                              (const element *)x,
		                              (const element *)weight,
		                              (const float *)rstd,
		                              tokens,
		                              (int)width,
		                              (float)addend};
		queue_backward<decltype(kind)>(device, name, g, parts);
		wlb_queue_add_columns<gradient>(device, name, d_weight, sums, (int)parts, (int)width);
	});
}
