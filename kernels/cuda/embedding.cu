/*
 * Gathers rows of the embedding or of a matrix, by units of 16 bytes or of one element, and adds to the gradients of
 * the embedding.
 *
 * Backward sorts the tokens by row, so that the tokens of a row are neighbours in the order of the tokens, and adds
 * each run of equal rows. Tiles of tokens are sorted in shared memory, then merged two by two. The sums are divided by
 * position, not by row, so that a row of many tokens takes no longer than many rows: a block sums the runs of CHUNK
 * positions; what a run has in further chunks is stored, and added by the block of the chunk in which it begins.
 */
#include "kernels/cuda/element.cuh"

/* -- rows -- */

/* Where the rows come from: row i of out is the row rows[i] - first of x, or 0 where that is not in [0, count). rows
 * NULL: row i. */
struct row_source {
	const int32_t *rows;
	int64_t first, count;
};

/* Strides and width are in units. */
template <typename unit>
__global__ static void copy_rows_kernel(unit *out, int64_t out_stride, const unit *x, int64_t x_stride,
                                        int64_t out_rows, int64_t width, struct row_source source)
{
	const int64_t i = wlb_row_of_thread();
	if (i >= out_rows)
		return;
	const int64_t row = source.rows == nullptr ? i : source.rows[i] - source.first;
	const bool there = row >= 0 && row < source.count;
	unit *to = out + i * out_stride;
	const unit *from = x + row * x_stride;
	for (int64_t u = threadIdx.x; u < width; u += blockDim.x)
		to[u] = there ? from[u] : unit();
}

/* Queues out[i] = the row that `source` says, for `rows` rows of `width` elements of the device's compute type. */
static void copy_rows(struct wlb_device *device, const char *name, void *out, int64_t out_stride, const void *x,
                      int64_t x_stride, int64_t rows, int64_t width, const struct row_source &source)
{
	if (rows == 0 || width == 0)
		return;
	wlb_choose_kind(device->compute, {out_stride, x_stride, width}, {out, x}, [&](auto kind) {
		typedef typename decltype(kind)::element element;
		typedef typename wlb_pack<element, kind.count>::type unit;
		const int64_t units = width / kind.count;
		wlb_cuda_launch(device, name, wlb_rows_grid(rows, units), copy_rows_kernel<unit>, (unit *)out,
		                out_stride / kind.count, (const unit *)x, x_stride / kind.count, rows, units, source);
	});
}

void wlb_cuda_embedding_forward(struct wlb_device *device, void *out, const void *table, const int32_t *ids,
                                int64_t tokens, int64_t width, int64_t first, int64_t count)
{
	copy_rows(device, "embedding_forward", out, width, table, width, tokens, width, {ids, first, count});
}

void wlb_cuda_gather_rows(struct wlb_device *device, void *out, int64_t out_stride, const void *x, int64_t x_stride,
                          const int32_t *rows, int64_t count, int64_t width)
{
	copy_rows(device, "gather_rows", out, out_stride, x, x_stride, count, width, {rows, 0, INT64_MAX});
}

/* -- the sorted order -- */

/* A token by its row, then its number: no two are equal, so that there is one sorted order. */
typedef unsigned long long sort_key;

static constexpr unsigned TILE = 1024, SORT_THREADS = TILE / 2; /* tokens of a tile; a thread compares pairs */
static constexpr int CHUNK = 32;

/* The row of keys that are not to be added: of ids that other ranks have. */
static constexpr uint32_t NO_ROW = 0xffffffffu;

__device__ static inline sort_key key_of(const int32_t *ids, int64_t token, int64_t first, int64_t count)
{
	const int64_t row = ids[token] - first;
	const sort_key high = row >= 0 && row < count ? (sort_key)row : NO_ROW;
	return high << 32 | (sort_key)token;
}

__device__ static inline uint32_t row_of(sort_key key)
{
	return (uint32_t)(key >> 32);
}

/* Sorts the tokens of a tile: a bitonic sort (Batcher 1968), in which thread i compares one pair in each step. */
__global__ static void sort_tiles(sort_key *keys, const int32_t *ids, int64_t tokens, int64_t first, int64_t count)
{
	static __shared__ sort_key tile[TILE];
	const int64_t begin = (int64_t)blockIdx.x * TILE;
	for (unsigned i = threadIdx.x; i < TILE; i += blockDim.x)
		tile[i] = begin + i < tokens ? key_of(ids, begin + i, first, count) : ~(sort_key)0;
	for (unsigned sorted = 2; sorted <= TILE; sorted *= 2)
		for (unsigned distance = sorted / 2; distance > 0; distance /= 2) {
			__syncthreads();
			const unsigned i = threadIdx.x / distance * distance * 2 + threadIdx.x % distance;
			const sort_key low = tile[i], high = tile[i + distance];
			if ((low > high) == ((i & sorted) == 0)) {
				tile[i] = high;
				tile[i + distance] = low;
			}
		}
	__syncthreads();
	for (unsigned i = threadIdx.x; i < TILE && begin + i < tokens; i += blockDim.x)
		keys[begin + i] = tile[i];
}

/* Returns how many of `count` sorted keys are below `key`. */
__device__ static inline int64_t count_below(const sort_key *keys, int64_t count, sort_key key)
{
	int64_t low = 0, high = count;
	while (low < high) {
		const int64_t middle = (low + high) / 2;
		if (keys[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Merges neighbouring runs of `run` sorted keys, a power of two: a key's place is its place in its own run and the
 * number of keys below it in the other. */
__global__ static void merge_runs(sort_key *merged, const sort_key *keys, int64_t tokens, int64_t run)
{
	const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= tokens)
		return;
	const int64_t pair = i & -(2 * run), other = (i & run) == 0 ? pair + run : pair;
	const int64_t left = tokens - other, other_count = left < 0 ? 0 : min(left, run);
	const sort_key key = keys[i];
	merged[pair + i % run + count_below(keys + other, other_count, key)] = key;
}

/* -- the sums of runs of equal rows -- */

/* The arrays of a backward pass; parts[chunk][0 or 1, width]: of the run that continues from the chunk before, and of
 * the run that begins in the chunk and continues in the next. */
template <typename element, typename gradient> struct backward_arrays {
	gradient *d_table;
	float *parts;
	const element *d_out;
	const sort_key *keys;
	int64_t tokens, width;
};

enum { CONTINUED = 0, CONTINUING = 1 };

/* Rows that a thread loads before it adds the first of them. */
static constexpr int AHEAD = 4;

/* Ends the sum of a run in pack number `pack`: adds it to the table, or keeps it where the run is in several chunks. */
template <int count, typename element, typename gradient>
__device__ static inline void end_run(const backward_arrays<element, gradient> &a, int64_t chunk, uint32_t row,
                                      bool continued, bool continuing, float (&sum)[count], int64_t pack)
{
	if (continued || continuing) {
		wlb_store_floats<count>(a.parts + (2 * chunk + (continued ? CONTINUED : CONTINUING)) * a.width, pack,
		                        sum);
	} else {
		wlb_add_gradients<count>(a.d_table + row * a.width, pack, sum);
	}
#pragma unroll
	for (int j = 0; j < count; j++)
		sum[j] = 0;
}

/* Loads the keys of a chunk to keys[1 .. CHUNK], and the one on either side; those that are not there have no row. */
template <typename element, typename gradient>
__device__ static inline void load_keys(sort_key (&keys)[CHUNK + 2], const backward_arrays<element, gradient> &a,
                                        int64_t chunk)
{
	for (int i = (int)threadIdx.x; i < CHUNK + 2; i += (int)blockDim.x) {
		const int64_t at = chunk * CHUNK + i - 1;
		keys[i] = at >= 0 && at < a.tokens ? a.keys[at] : ~(sort_key)0;
	}
	__syncthreads();
}

/* Block x sums the runs of a chunk, the blocks of y divide the columns. */
template <typename element, int count, typename gradient>
__global__ static void sum_chunks(backward_arrays<element, gradient> a)
{
	static __shared__ sort_key keys[CHUNK + 2];
	const int64_t chunk = blockIdx.x, pack = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
	load_keys(keys, a, chunk);
	if (pack >= a.width / count)
		return;
	float sum[count] = {};
	bool continued = row_of(keys[0]) == row_of(keys[1]);
	for (int begin = 1; begin <= CHUNK && row_of(keys[begin]) != NO_ROW; begin += AHEAD) {
		wlb_pack<element, count> ahead[AHEAD];
#pragma unroll
		for (int i = 0; i < AHEAD; i++)
			if (row_of(keys[begin + i]) != NO_ROW)
				ahead[i] =
					wlb_load<count>(a.d_out + (int64_t)(uint32_t)keys[begin + i] * a.width, pack);
#pragma unroll
		for (int i = 0; i < AHEAD; i++) {
			const uint32_t row = row_of(keys[begin + i]);
			if (row == NO_ROW)
				break;
			float values[count];
			wlb_values(values, ahead[i]);
#pragma unroll
			for (int j = 0; j < count; j++)
				sum[j] += values[j];
			const bool same = row == row_of(keys[begin + i + 1]);
			if (same && begin + i < CHUNK)
				continue;
			end_run<count>(a, chunk, row, continued, same, sum, pack);
			continued = false;
		}
	}
}

/* Block x adds the run that begins in its chunk and continues in the next, where there is one. */
template <typename element, typename gradient>
__global__ static void add_continuing(backward_arrays<element, gradient> a)
{
	const int64_t chunk = blockIdx.x, last = (chunk + 1) * CHUNK - 1;
	const int64_t column = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
	const uint32_t row = row_of(a.keys[last]);
	const bool before = chunk > 0 && row_of(a.keys[chunk * CHUNK - 1]) == row;
	if (row == NO_ROW || before || row_of(a.keys[last + 1]) != row || column >= a.width)
		return;
	const float *part = a.parts + 2 * chunk * a.width + column;
	float sum[1] = {part[CONTINUING * a.width]};
	for (int64_t at = chunk + 1; at * CHUNK < a.tokens && row_of(a.keys[at * CHUNK]) == row; at++)
		sum[0] += a.parts[(2 * at + CONTINUED) * a.width + column];
	wlb_add_gradients<1>(a.d_table + row * a.width, column, sum);
}

/* Queues the sort; returns those of the two arrays of keys that it ends in. */
static sort_key *sort_tokens(struct wlb_device *device, const char *name, sort_key *keys, sort_key *other,
                             const int32_t *ids, int64_t tokens, int64_t first, int64_t count)
{
	wlb_cuda_launch(device, name, {(unsigned)((tokens + TILE - 1) / TILE), SORT_THREADS}, sort_tiles, keys, ids,
	                tokens, first, count);
	for (int64_t run = TILE; run < tokens; run *= 2) {
		wlb_cuda_launch(device, name, {(unsigned)((tokens + WLB_BLOCK - 1) / WLB_BLOCK), WLB_BLOCK}, merge_runs,
		                other, keys, tokens, run);
		sort_key *const swapped = keys;
		keys = other;
		other = swapped;
	}
	return keys;
}

static int64_t chunks_of(int64_t tokens)
{
	return (tokens + CHUNK - 1) / CHUNK;
}

static size_t parts_bytes(int64_t tokens, int64_t width)
{
	return (size_t)(2 * chunks_of(tokens) * width) * sizeof(float);
}

/* The sums of chunks, and two arrays of keys. */
size_t wlb_cuda_embedding_scratch_bytes(int64_t rows, int64_t width)
{
	return parts_bytes(rows, width) + 2 * (size_t)rows * sizeof(sort_key);
}

void wlb_cuda_embedding_backward(struct wlb_device *device, void *d_table, const void *d_out, const int32_t *ids,
                                 int64_t tokens, int64_t width, int64_t first, int64_t count)
{
	if (tokens == 0 || width == 0 || count == 0)
		return;
	const char *name = "embedding_backward";
	const int64_t chunks = chunks_of(tokens);
	float *parts = (float *)wlb_cuda_scratch(device, wlb_cuda_embedding_scratch_bytes(tokens, width), name);
	if (parts == NULL)
		return;
	sort_key *keys = (sort_key *)((char *)parts + parts_bytes(tokens, width));
	keys = sort_tokens(device, name, keys, keys + tokens, ids, tokens, first, count);
	wlb_choose_kinds(device, {width}, {d_out, d_table}, [=](auto kind, auto zero) {
		typedef typename decltype(kind)::element element;
		typedef decltype(zero) gradient;
		const backward_arrays<element, gradient> arrays = {
			(gradient *)d_table, parts, (const element *)d_out, keys, tokens, width};
		const unsigned threads = wlb_row_threads(width / kind.count, 1, 64);
		const dim3 blocks((unsigned)chunks, (unsigned)((width / kind.count + threads - 1) / threads));
		wlb_cuda_launch(device, name, {blocks, threads}, sum_chunks<element, kind.count, gradient>, arrays);
		const dim3 further((unsigned)chunks - 1, (unsigned)((width + WLB_BLOCK - 1) / WLB_BLOCK));
		if (chunks > 1)
			wlb_cuda_launch(device, name, {further, WLB_BLOCK}, add_continuing<element, gradient>, arrays);
	});
}
