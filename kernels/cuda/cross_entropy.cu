/* Computes cross-entropy over a vocabulary of which each rank may hold a slice: first statistics, then the gradient. */
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/reduce.cuh"

static const unsigned THREADS_MAX = 512;

/* Packs that a thread loads at a time for the statistics. */
static constexpr int GROUP = 4;

/* The statistics of a row over one rank's slice of the vocabulary, as in statistics[tokens, 3]. */
struct row_statistics {
	float largest; /* the largest logit; -infinity where the slice is empty */
	float sum;     /* of exp(logit - largest) */
	float target;
};

/* A row may begin at any address: `head` elements, then packs, then the rest. */
struct row_parts {
	unsigned head;
	int64_t packs;
	int64_t tail; /* the first element of the rest */
};

template <typename element> __device__ static inline row_parts parts_of(const element *row, int64_t count)
{
	constexpr int of_pack = WLB_PACK<element>;
	const unsigned past = (unsigned)((uintptr_t)row / sizeof(element) % of_pack);
	const unsigned head = (unsigned)min((int64_t)(past == 0 ? 0 : of_pack - past), count);
	const int64_t packs = (count - head) / of_pack;
	return {head, packs, head + packs * of_pack};
}

/* -- statistics -- */

/* A maximum and a sum relative to it, which is known as far as the row has been read (Milakov & Gimelshein 2018). */
struct running {
	float largest, sum;
};

/* A sum that is relative to `from`, relative to `to`. A sum of nothing has -infinity for `from`. */
__device__ static inline float rescale(float sum, float from, float to)
{
	return from == to ? sum : sum * expf(from - to);
}

/* exp(x) for x of at most 0. The product is rounded, which adds |x| 2^-24 to the error of wlb_exp2; a term of a sum of
 * exp(x) is the smaller the larger |x| is. */
__device__ static inline float small_exp(float x)
{
	return wlb_exp2(x * 1.44269504088896341f); /* log2 e */
}

/* Adds the packs i, i + step, ..., GROUP in all, or as many as there are. All are loaded before the first is added, so
 * that their loads are under way together. */
template <int count, typename element>
__device__ static inline void add_group(running &r, const element *from, int64_t i, int64_t packs, int step)
{
	wlb_pack<element, count> group[GROUP];
	float values[count], largest = r.largest;
#pragma unroll
	for (int g = 0; g < GROUP; g++)
		if (i + g * step < packs)
			group[g] = wlb_load<count>(from, i + g * step);
#pragma unroll
	for (int g = 0; g < GROUP; g++)
		if (i + g * step < packs) {
			wlb_values(values, group[g]);
#pragma unroll
			for (int j = 0; j < count; j++)
				largest = fmaxf(largest, values[j]);
		}
	/* Of logits that are all -infinity the sum is 0: their difference from themselves would not be a number. */
	const float base = largest == -INFINITY ? 0.0f : largest;
	float sum = r.sum * small_exp(r.largest - base);
#pragma unroll
	for (int g = 0; g < GROUP; g++)
		if (i + g * step < packs) {
			wlb_values(values, group[g]);
#pragma unroll
			for (int j = 0; j < count; j++)
				sum += small_exp(values[j] - base);
		}
	r = {largest, sum};
}

__device__ static inline running join(const running &a, const running &b)
{
	const float largest = fmaxf(a.largest, b.largest);
	return {largest, rescale(a.sum, a.largest, largest) + rescale(b.sum, b.largest, largest)};
}

/* Every lane of the warp must call it; lane 0 receives all. */
__device__ static inline running join_warp(running r)
{
	for (int distance = 16; distance > 0; distance /= 2)
		r = join(r, {__shfl_down_sync(0xffffffffu, r.largest, distance),
		             __shfl_down_sync(0xffffffffu, r.sum, distance)});
	return r;
}

/* Every thread of the block must call it; thread 0 receives all. */
__device__ static inline running join_block(running r)
{
	static __shared__ running of_warp[32];
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	r = join_warp(r);
	if (lane == 0)
		of_warp[warp] = r;
	__syncthreads();
	return warp == 0 ? join_warp(lane < warps ? of_warp[lane] : running{-INFINITY, 0}) : r;
}

/* Computes one token in each block. */
template <typename element>
__global__ static void __launch_bounds__(THREADS_MAX)
	cross_entropy_statistics(row_statistics *statistics, const element *logits, const int32_t *targets,
                                 int64_t first, int64_t count)
{
	constexpr int of_pack = WLB_PACK<element>;
	const int64_t target = targets[blockIdx.x];
	const element *row = logits + blockIdx.x * count;
	if (target < 0) {
		if (threadIdx.x == 0)
			statistics[blockIdx.x] = {0, 0, 0};
		return;
	}
	const row_parts parts = parts_of(row, count);
	running r = {-INFINITY, 0};
	float of_target[1] = {};
	if (threadIdx.x == 0 && target >= first && target - first < count)
		wlb_load_values<1>(of_target, row, target - first);
	add_group<1>(r, row, threadIdx.x, parts.head, (int)blockDim.x);
	for (int64_t i = threadIdx.x; i < parts.packs; i += GROUP * (int64_t)blockDim.x)
		add_group<of_pack>(r, row + parts.head, i, parts.packs, (int)blockDim.x);
	add_group<1>(r, row + parts.tail, threadIdx.x, count - parts.tail, (int)blockDim.x);
	r = join_block(r);
	if (threadIdx.x == 0)
		statistics[blockIdx.x] = {r.largest, r.sum, of_target[0]};
}

/* -- gradient -- */

/* The statistics of a row over the whole vocabulary. They are in double, so that combining slices of float loses no
 * precision, and the ranks are added in order. */
struct combined {
	double largest, sum, target;
};

__device__ static inline combined combine(const row_statistics *statistics, int parts, int64_t tokens)
{
	combined all = {-INFINITY, 0, 0};
	for (int part = 0; part < parts; part++)
		all.largest = fmax(all.largest, (double)statistics[part * tokens].largest);
	for (int part = 0; part < parts; part++) {
		const row_statistics slice = statistics[part * tokens];
		all.sum += slice.sum * exp(slice.largest - all.largest);
		all.target += slice.target;
	}
	return all;
}

/* Computes the numbers of a row once, and gives them to all threads of the block. */
struct row_factors {
	float largest, factor, inverse_cap;
};

__device__ static inline row_factors factors_of(double *loss, const row_statistics *statistics, int parts,
                                                int64_t tokens, double scale, double softcap)
{
	static __shared__ row_factors shared;
	if (threadIdx.x == 0) {
		const combined all = combine(statistics, parts, tokens);
		*loss = log(all.sum) + all.largest - all.target;
		shared = {(float)all.largest, (float)(scale / all.sum), softcap > 0 ? (float)(1 / softcap) : 0.0f};
	}
	__syncthreads();
	return shared;
}

/* The values of one pack or element whose first column is `column`, replaced by their gradient; behind a soft cap c,
 * times 1 - (value / c)^2, the derivative of c tanh(x / c). */
template <int count, typename element>
__device__ static inline void replace(element *from, int64_t i, const row_factors &row, int64_t column, int64_t target,
                                      float scale)
{
	float values[count];
	wlb_load_values<count>(values, from, i);
#pragma unroll
	for (int j = 0; j < count; j++) {
		const float part_of_cap = values[j] * row.inverse_cap;
		values[j] = expf(values[j] - row.largest) * row.factor;
		if (column + j == target)
			values[j] -= scale;
		if (row.inverse_cap > 0)
			values[j] *= 1.0f - part_of_cap * part_of_cap;
	}
	wlb_store_values<count>(from, i, values);
}

template <typename element>
__device__ static inline void replace_row(element *row, const row_factors &factors, int64_t target, int64_t count,
                                          float scale)
{
	constexpr int of_pack = WLB_PACK<element>;
	const row_parts parts = parts_of(row, count);
	if (threadIdx.x < parts.head)
		replace<1>(row, threadIdx.x, factors, threadIdx.x, target, scale);
	for (int64_t i = threadIdx.x; i < parts.packs; i += blockDim.x)
		replace<of_pack>(row + parts.head, i, factors, parts.head + i * of_pack, target, scale);
	if (parts.tail + threadIdx.x < count)
		replace<1>(row, parts.tail + threadIdx.x, factors, parts.tail + threadIdx.x, target, scale);
}

template <typename element> __device__ static inline void clear_row(element *row, int64_t count)
{
	constexpr int of_pack = WLB_PACK<element>;
	const row_parts parts = parts_of(row, count);
	const float one[1] = {}, zeros[of_pack] = {};
	if (threadIdx.x < parts.head)
		wlb_store_values<1>(row, threadIdx.x, one);
	for (int64_t i = threadIdx.x; i < parts.packs; i += blockDim.x)
		wlb_store_values<of_pack>(row + parts.head, i, zeros);
	if (parts.tail + threadIdx.x < count)
		wlb_store_values<1>(row, parts.tail + threadIdx.x, one);
}

/* Computes one token in each block; losses[tokens]. */
template <typename element>
__global__ static void __launch_bounds__(THREADS_MAX)
	cross_entropy_gradient(double *losses, element *logits, const row_statistics *statistics, int parts,
                               const int32_t *targets, int64_t tokens, int64_t first, int64_t count, double scale,
                               double softcap)
{
	const int64_t target = targets[blockIdx.x];
	element *row = logits + blockIdx.x * count;
	if (target < 0) {
		if (threadIdx.x == 0)
			losses[blockIdx.x] = 0;
		clear_row(row, count);
		return;
	}
	const row_factors factors =
		factors_of(losses + blockIdx.x, statistics + blockIdx.x, parts, tokens, scale, softcap);
	replace_row(row, factors, target - first, count, (float)scale);
}

/* -- launches -- */

static unsigned threads_of_row(const struct wlb_device *device, int64_t count)
{
	const int64_t of_pack = 16 / (int64_t)wlb_dtype_bytes(device->compute);
	return wlb_row_threads((count + of_pack - 1) / of_pack, 1, THREADS_MAX);
}

void wlb_cuda_cross_entropy_statistics(struct wlb_device *device, void *statistics, const void *logits,
                                       const int32_t *targets, int64_t tokens, int64_t first, int64_t count)
{
	if (tokens == 0)
		return;
	const struct wlb_cuda_grid grid = {(unsigned)tokens, threads_of_row(device, count)};
	const char *name = "cross_entropy_statistics";
	row_statistics *rows = (row_statistics *)statistics;
	if (device->compute == WLB_BFLOAT16)
		wlb_cuda_launch(device, name, grid, cross_entropy_statistics<wlb_bf16>, rows, (const wlb_bf16 *)logits,
		                targets, first, count);
	else
		wlb_cuda_launch(device, name, grid, cross_entropy_statistics<float>, rows, (const float *)logits,
		                targets, first, count);
}

/* The loss of each row. */
size_t wlb_cuda_cross_entropy_scratch_bytes(int64_t rows)
{
	return (size_t)rows * sizeof(double);
}

void wlb_cuda_cross_entropy_gradient(struct wlb_device *device, double *loss_sum, void *logits, const void *statistics,
                                     int parts, const int32_t *targets, int64_t tokens, int64_t first, int64_t count,
                                     double scale, double softcap)
{
	const char *name = "cross_entropy_gradient";
	if (tokens == 0)
		return;
	double *losses = (double *)wlb_cuda_scratch(device, wlb_cuda_cross_entropy_scratch_bytes(tokens), name);
	if (losses == NULL)
		return;
	const struct wlb_cuda_grid grid = {(unsigned)tokens, threads_of_row(device, count)};
	const row_statistics *rows = (const row_statistics *)statistics;
	if (device->compute == WLB_BFLOAT16)
		wlb_cuda_launch(device, name, grid, cross_entropy_gradient<wlb_bf16>, losses, (wlb_bf16 *)logits, rows,
		                parts, targets, tokens, first, count, scale, softcap);
	else
		wlb_cuda_launch(device, name, grid, cross_entropy_gradient<float>, losses, (float *)logits, rows, parts,
		                targets, tokens, first, count, scale, softcap);
	if (loss_sum != NULL)
		wlb_cuda_launch(device, name, {1, WLB_BLOCK}, wlb_add_parts<double>, loss_sum, losses, (int)tokens);
}
