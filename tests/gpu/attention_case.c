/* The cases of attention, and a run of one on a device. */
#include "tests/gpu/attention_case.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/bfloat16.h"

/* Documents around the sizes of fragments and of blocks of keys, and some rows of padding. */
static const struct wlb_segment SHORT[] = {{0, 1, 0, 1, 0},       {1, 2, 1, 2, 0},      {3, 15, 3, 15, 0},
                                           {18, 16, 18, 16, 0},   {34, 17, 34, 17, 0},  {51, 63, 51, 63, 0},
                                           {114, 64, 114, 64, 0}, {178, 65, 178, 65, 0}};

/* Documents around the size of a tile, and one of several tiles. */
static const struct wlb_segment LONG[] = {
	{0, 127, 0, 127, 0}, {127, 128, 127, 128, 0}, {255, 129, 255, 129, 0}, {384, 300, 384, 300, 0}};

/* Two chunks of each of two documents: chunks 0 and 3 of four of 200 tokens, and two uneven ones of 150, of which the
 * second leaves keys that no query here sees. The keys of the documents are elsewhere than the queries, and there is a
 * document whose keys are not here, and one whose first queries are before its first key. Of the last one the 65th key
 * is seen by the 64th query alone. */
static const struct wlb_segment SHARED[] = {{0, 50, 7, 50, 0},       {50, 50, 7, 200, 150}, {103, 9, 207, 9, 0},
                                            {112, 70, 207, 150, 40}, {182, 3, 0, 0, 0},     {185, 20, 360, 12, -5},
                                            {207, 64, 375, 65, 1}};

#define SEGMENTS(list) list, (int)(sizeof(list) / sizeof(*(list)))
const struct attention_case ATTENTION_CASES[] = {
	{"short documents", SEGMENTS(SHORT), 245, 245, ATTENTION_QKV, 2, 1, 0, 0},
	{"shared keys", SEGMENTS(SHARED), 274, 441, ATTENTION_KV, 4, 2, 0, 0},
	{"long documents", SEGMENTS(LONG), 684, 684, ATTENTION_SEPARATE, 1, 1, 0, 0},
	{"short documents in a window", SEGMENTS(SHORT), 245, 245, ATTENTION_QKV, 2, 1, 17, 0},
	{"shared keys in a window", SEGMENTS(SHARED), 274, 441, ATTENTION_KV, 4, 2, 41, 0},
	{"long documents in a window", SEGMENTS(LONG), 684, 684, ATTENTION_SEPARATE, 1, 1, 100, 0},
	{"soft cap", SEGMENTS(SHARED), 274, 441, ATTENTION_KV, 2, 1, 0, 1.5f},
};
const int ATTENTION_CASE_COUNT = sizeof(ATTENTION_CASES) / sizeof(*ATTENTION_CASES);

struct attention_place attention_place_of(const struct attention_case *of, int head_dim, enum attention_matrix matrix)
{
	const int64_t q = (int64_t)of->heads * head_dim, kv = (int64_t)of->kv_heads * head_dim;
	if (matrix >= MATRIX_OUT) /* with some columns that belong to nothing */
		return (struct attention_place){matrix, 8, q + 16, of->q_rows, of->heads};
	const int gradient = matrix >= MATRIX_D_Q ? MATRIX_D_Q : 0, which = matrix - gradient;
	struct attention_place place = {matrix, 0, which == MATRIX_Q ? q : kv,
	                                which == MATRIX_Q ? of->q_rows : of->k_rows,
	                                which == MATRIX_Q ? of->heads : of->kv_heads};
	if (of->layout == ATTENTION_QKV) {
		place.buffer = gradient + MATRIX_Q;
		place.offset = which == MATRIX_Q ? 0 : which == MATRIX_K ? q : q + kv;
		place.stride = q + 2 * kv;
	} else if (of->layout == ATTENTION_KV && which != MATRIX_Q) {
		place.buffer = gradient + MATRIX_K;
		place.offset = which == MATRIX_K ? 0 : kv;
		place.stride = 2 * kv;
	}
	return place;
}

static size_t element_bytes(const struct attention_run *run)
{
	return run->is_bf16 ? sizeof(uint16_t) : sizeof(float);
}

static double read_element(const unsigned char *buffer, int64_t index, int is_bf16)
{
	float value;
	uint16_t half;
	if (is_bf16) {
		memcpy(&half, buffer + index * (int64_t)sizeof(half), sizeof(half));
		return wlb_float_of_bfloat16(half);
	}
	memcpy(&value, buffer + index * (int64_t)sizeof(value), sizeof(value));
	return value;
}

double attention_element(const struct attention_run *run, unsigned char *const *buffers, enum attention_matrix matrix,
                         int row, int head, int column)
{
	const struct attention_place place = attention_place_of(run->of, run->head_dim, matrix);
	return read_element(buffers[place.buffer],
	                    place.offset + row * place.stride + (int64_t)head * run->head_dim + column, run->is_bf16);
}

/* Whether a row of q, or of k, is in a segment. */
static int is_covered(const struct attention_case *of, int of_keys, int row)
{
	for (int s = 0; s < of->count; s++) {
		const struct wlb_segment *segment = &of->segments[s];
		const int start = of_keys ? segment->k_start : segment->q_start;
		if (row >= start && row < start + (of_keys ? segment->k_count : segment->q_count))
			return 1;
	}
	return 0;
}

/* What lies in rows of no segment must not matter: it is not a number. */
static void poison(struct attention_run *run)
{
	static const enum attention_matrix read[] = {MATRIX_Q, MATRIX_K, MATRIX_V, MATRIX_D_OUT};
	const size_t size = element_bytes(run);
	const uint32_t bits = run->is_bf16 ? 0x7fc0 : 0x7fc00000;
	for (size_t i = 0; i < sizeof(read) / sizeof(*read); i++) {
		const struct attention_place place = attention_place_of(run->of, run->head_dim, read[i]);
		const int of_keys = read[i] == MATRIX_K || read[i] == MATRIX_V;
		for (int row = 0; row < place.rows; row++)
			for (int c = 0; c < place.heads * run->head_dim && !is_covered(run->of, of_keys, row); c++)
				memcpy(run->before[place.buffer] +
				               (size_t)(place.offset + row * place.stride + c) * size,
				       &bits, size);
	}
}

/* Numbers from -2 to 2 with 7 bits, which bfloat16 has. */
static void fill(struct attention_run *run)
{
	uint32_t random = 1;
	for (int b = 0; b < ATTENTION_BUFFERS; b++) {
		const size_t size = b >= BUFFER_LSE ? sizeof(float) : element_bytes(run);
		for (size_t i = 0; i < run->bytes[b] / size; i++) {
			random = random * 1664525u + 1013904223u;
			const float value = (float)((int)(random >> 24) - 128) / 64;
			uint32_t bits;
			memcpy(&bits, &value, sizeof(bits));
			bits >>= size == sizeof(uint16_t) ? 16 : 0;
			memcpy(run->before[b] + i * size, &bits, size);
		}
	}
}

static int allocate(struct attention_run *run, struct wlb_error *error)
{
	for (int m = 0; m <= MATRIX_D_OUT; m++) {
		const struct attention_place place =
			attention_place_of(run->of, run->head_dim, (enum attention_matrix)m);
		run->bytes[place.buffer] = (size_t)(place.rows * place.stride) * element_bytes(run);
	}
	const size_t statistics = (size_t)run->of->q_rows * (size_t)run->of->heads * sizeof(float);
	run->bytes[BUFFER_LSE] = run->bytes[BUFFER_DELTA] = statistics;
	for (int b = 0; b < ATTENTION_BUFFERS; b++) {
		run->before[b] = malloc(run->bytes[b] + 1);
		run->after[b] = malloc(run->bytes[b] + 1);
		if (run->before[b] == NULL || run->after[b] == NULL)
			return wlb_fail(error, "out of host memory");
	}
	return 0;
}

/* -- on the device -- */

enum { LIST_SEGMENTS, LIST_QUERIES, LIST_KEYS, LIST_READERS, LISTS };

/* What a run has in device memory. */
struct on_device {
	void *buffers[ATTENTION_BUFFERS];
	void *lists[LISTS];
};

static void *put(struct wlb_device *device, const void *from, size_t bytes, struct wlb_error *error)
{
	void *memory = device->ops->alloc(device, bytes, error);
	if (memory != NULL && bytes > 0)
		device->ops->to_device(device, NULL, memory, from, bytes);
	return memory;
}

static int put_all(struct on_device *memory, struct wlb_device *device, const struct attention_run *run,
                   const struct wlb_attention_tiles *tiles, struct wlb_error *error)
{
	const void *const lists[LISTS] = {run->of->segments, tiles->queries, tiles->keys, tiles->readers};
	const size_t bytes[LISTS] = {(size_t)run->of->count * sizeof(*run->of->segments),
	                             (size_t)tiles->query_tiles * sizeof(*tiles->queries),
	                             (size_t)tiles->key_tiles * sizeof(*tiles->keys),
	                             (size_t)tiles->reader_count * sizeof(*tiles->readers)};
	for (int i = 0; i < LISTS; i++)
		if ((memory->lists[i] = put(device, lists[i], bytes[i], error)) == NULL)
			return -1;
	for (int b = 0; b < ATTENTION_BUFFERS; b++)
		if ((memory->buffers[b] = put(device, run->before[b], run->bytes[b], error)) == NULL)
			return -1;
	return 0;
}

static struct wlb_cuda_rows rows_of(const struct on_device *memory, const struct attention_run *run,
                                    enum attention_matrix matrix)
{
	const struct attention_place place = attention_place_of(run->of, run->head_dim, matrix);
	return (struct wlb_cuda_rows){(char *)memory->buffers[place.buffer] + (size_t)place.offset * element_bytes(run),
	                              place.stride};
}

static int compute(struct wlb_device *device, const struct on_device *memory, const struct attention_run *run,
                   const struct wlb_attention_tiles *tiles, int tile_rows, struct wlb_error *error)
{
	const struct wlb_cuda_attention attention = {
		.is_bf16 = run->is_bf16,
		.heads = run->of->heads,
		.kv_heads = run->of->kv_heads,
		.head_dim = run->head_dim,
		.segments = memory->lists[LIST_SEGMENTS],
		.query_tiles = memory->lists[LIST_QUERIES],
		.key_tiles = memory->lists[LIST_KEYS],
		.readers = memory->lists[LIST_READERS],
		.query_tile_count = tiles->query_tiles,
		.key_tile_count = tiles->key_tiles,
		.softcap = run->of->softcap,
		.tile_rows = tile_rows,
		.window = run->of->window,
		.q_rows = run->of->q_rows,
		.k_rows = run->of->k_rows,
		.q = rows_of(memory, run, MATRIX_Q),
		.k = rows_of(memory, run, MATRIX_K),
		.v = rows_of(memory, run, MATRIX_V),
		.out = rows_of(memory, run, MATRIX_OUT),
		.lse = memory->buffers[BUFFER_LSE],
		.d_out = rows_of(memory, run, MATRIX_D_OUT),
		.d_q = rows_of(memory, run, MATRIX_D_Q),
		.d_k = rows_of(memory, run, MATRIX_D_K),
		.d_v = rows_of(memory, run, MATRIX_D_V),
		.delta = memory->buffers[BUFFER_DELTA],
	};
	if (wlb_cuda_attention_forward(device, &attention, error) != 0)
		return -1;
	return wlb_cuda_attention_backward(device, &attention, error);
}

int attention_case_run(struct attention_run *run, struct wlb_device *device, const struct attention_case *of,
                       int is_bf16, int head_dim, struct wlb_error *error)
{
	*run = (struct attention_run){.of = of, .is_bf16 = is_bf16, .head_dim = head_dim};
	struct on_device memory = {{NULL}, {NULL}};
	struct wlb_attention_tiles tiles = {0};
	const int tile_rows = wlb_cuda_attention_tile_rows(is_bf16, head_dim);
	int result = allocate(run, error);
	if (result == 0) {
		fill(run);
		poison(run);
		result = wlb_attention_tiles_make(&tiles, of->segments, of->count, tile_rows, error);
	}
	if (result == 0)
		result = put_all(&memory, device, run, &tiles, error);
	if (result == 0)
		result = compute(device, &memory, run, &tiles, tile_rows, error);
	for (int b = 0; b < ATTENTION_BUFFERS && result == 0; b++)
		device->ops->to_host(device, run->after[b], memory.buffers[b], run->bytes[b]);
	if (result == 0)
		result = device->ops->synchronize(device, error);
	for (int b = 0; b < ATTENTION_BUFFERS; b++)
		device->ops->release(device, memory.buffers[b]);
	for (int i = 0; i < LISTS; i++)
		device->ops->release(device, memory.lists[i]);
	wlb_attention_tiles_free(&tiles);
	return result;
}

void attention_case_free(struct attention_run *run)
{
	for (int b = 0; b < ATTENTION_BUFFERS; b++) {
		free(run->before[b]);
		free(run->after[b]);
	}
}

int attention_case_same(const struct attention_run *one, const struct attention_run *other)
{
	for (int b = 0; b < ATTENTION_BUFFERS; b++)
		if (one->bytes[b] > 0 && memcmp(one->after[b], other->after[b], one->bytes[b]) != 0)
			return 0;
	return 1;
}
