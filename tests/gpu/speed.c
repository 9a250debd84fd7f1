/*
 * How fast the operations of a CUDA device are in bfloat16, each alone, on the sizes of a Llama of 1.1 G parameters
 * (hidden 2048, 32 heads of 64, 8 KV heads, feed-forward 8192) with 16,384 tokens; attention with heads of 128 where
 * nothing else is said.
 *
 *   wlb-gpu-speed [--tiny]
 *
 * Prints lines "name <tab> number <tab> unit": TFLOP/s of products and of attention, where a causal pair of a query and
 * a key has 4 FLOPs for each column of a head forward and 10 backward; for operations that memory bounds the share of
 * the speed at which memory is copied, by the bytes that they must read and write. --tiny: sizes for a test.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/attention_tiles.h"
#include "kernels/ops.h"

enum { BUFFERS = 6, HEAD_DIM = 128, SMALL_HEAD_DIM = 64, MOST_DOCUMENTS = 32 };

/* Elements of the random numbers that fill a buffer again and again: a prime, so that no two rows of a matrix are the
 * same. */
enum { PATTERN = 262147 };

/* Each run takes at most about so long on all its repetitions. */
#define MEASURE_S 0.5

struct size {
	int64_t tokens, width, feed_forward, vocabulary;
	int heads, kv_heads; /* of attention */
};

static const struct size LARGE = {16384, 2048, 8192, 32000, 32, 8}, TINY = {48, 128, 128, 257, 2, 1};

struct bench {
	struct wlb_device *device;
	struct size size;
	int most_runs;
	struct wlb_event *began, *ended;
	void *buffers[BUFFERS]; /* of 4 bytes for each of buffer_elements */
	int64_t buffer_elements;
	double *sum, *factor; /* device */
	int32_t *targets;     /* device: one for each row of logits */
	struct wlb_weight weight;
	struct wlb_segments segments;
	struct wlb_attention_shape shape;
	double copy_bytes_per_s;
	int failed;
};

typedef void action(struct bench *);

static void report(struct bench *b, const char *name, const struct wlb_error *error)
{
	fprintf(stderr, "wlb-gpu-speed: %s: %s\n", name, error->message);
	b->failed = 1;
}

static double seconds_of(struct bench *b, action *run, int times)
{
	const struct wlb_ops *ops = b->device->ops;
	struct wlb_error error;
	ops->event_record(b->device, b->began, NULL);
	for (int i = 0; i < times; i++)
		run(b);
	ops->event_record(b->device, b->ended, NULL);
	if (ops->event_wait(b->device, b->ended, &error) < 0) {
		report(b, "a measurement", &error);
		return -1.0;
	}
	return ops->event_elapsed_s(b->device, b->began, b->ended) / times;
}

/* Returns the seconds of one run: after two that are not measured, the mean of as many as MEASURE_S allows. */
static double measure(struct bench *b, action *run)
{
	double once_s = seconds_of(b, run, 2);
	int times = once_s > 0.0 && once_s * b->most_runs > MEASURE_S ? (int)(MEASURE_S / once_s) : b->most_runs;
	return once_s < 0.0 ? -1.0 : seconds_of(b, run, times > 1 ? times : 1);
}

static void print_rate(struct bench *b, const char *name, action *run, double flops)
{
	double seconds = measure(b, run);
	if (seconds > 0.0)
		printf("%s\t%.1f\tTFLOP/s\n", name, 1e-12 * flops / seconds);
	fflush(stdout);
}

/* -- what memory bounds -- */

static int64_t elements(const struct bench *b)
{
	return b->size.tokens * b->size.width;
}

static void copy(struct bench *b)
{
	b->device->ops->copy(b->device, b->buffers[0], b->buffers[1], (size_t)b->buffer_elements * sizeof(float));
}

#define OPERATION(name, ...)                                                                                           \
	static void name(struct bench *b)                                                                              \
	{                                                                                                              \
		void **m = b->buffers;                                                                                 \
		int64_t n = b->size.tokens, w = b->size.width;                                                         \
		b->device->ops->name(b->device, __VA_ARGS__);                                                          \
		(void)m, (void)n, (void)w;                                                                             \
	}

OPERATION(add, m[0], m[1], n *w)
OPERATION(rmsnorm_forward, m[0], m[1], m[2], m[2], m[3], m[4], 0, n, w, 1e-5)
OPERATION(rmsnorm_backward, m[0], m[5], m[2], m[3], m[4], 0, m[1], n, w)
OPERATION(rope, m[0], w, m[1], n, (int)(w / 64), 64, 32, 1)
OPERATION(swiglu_forward, m[0], m[1], n, b->size.feed_forward)
OPERATION(swiglu_backward, m[0], m[1], n, b->size.feed_forward)
OPERATION(gather_rows, m[0], w, m[1], w, NULL, n, w)
OPERATION(sum_squares, b->sum, m[0], n *w)
OPERATION(cross_entropy_statistics, m[1], m[0], b->targets, n / 4, 0, b->size.vocabulary)
OPERATION(cross_entropy_gradient, b->sum, m[0], m[1], 1, b->targets, n / 4, 0, b->size.vocabulary, 1.0, 0)

static void adamw(struct bench *b)
{
	static const struct wlb_adamw settings = {1e-6, 0.9, 0.95, 1e-8, 0.1, 1, NULL};
	void **m = b->buffers;
	b->device->ops->adamw(b->device, m[0], m[1], m[2], m[3], m[4], elements(b), &settings, b->factor);
}

/* Bytes that must be read and written: of elements of tokens x width, of 2 bytes each. RoPE also reads the angles of a
 * row, of 4 bytes for each column of a head. */
static const struct {
	const char *name;
	action *run;
	double row_bytes; /* for each element of width; */
	double feed_forward_bytes, vocabulary_bytes;
} BOUND_BY_MEMORY[] = {
	{"add", add, 6, 0, 0},
	{"rmsnorm_forward", rmsnorm_forward, 8, 0, 0},
	{"rmsnorm_backward", rmsnorm_backward, 8, 0, 0},
	{"rope", rope, 4 + 4 * 64 / 2048.0, 0, 0},
	{"swiglu_forward", swiglu_forward, 0, 6, 0},
	{"swiglu_backward", swiglu_backward, 0, 12, 0},
	{"gather_rows", gather_rows, 4, 0, 0},
	{"sum_squares", sum_squares, 4, 0, 0},
	{"cross_entropy_statistics", cross_entropy_statistics, 0, 0, 0.5},
	{"cross_entropy_gradient", cross_entropy_gradient, 0, 0, 1},
	{"adamw", adamw, 28, 0, 0},
};

static void measure_memory(struct bench *b)
{
	double seconds = measure(b, copy);
	b->copy_bytes_per_s = seconds > 0.0 ? 2.0 * 4.0 * (double)b->buffer_elements / seconds : 0.0;
	printf("copy\t%.0f\tGB/s, read and written\n", 1e-9 * b->copy_bytes_per_s);
	for (size_t i = 0; i < sizeof(BOUND_BY_MEMORY) / sizeof(BOUND_BY_MEMORY[0]); i++) {
		double bytes =
			(double)b->size.tokens * (BOUND_BY_MEMORY[i].row_bytes * (double)b->size.width +
		                                  BOUND_BY_MEMORY[i].feed_forward_bytes * (double)b->size.feed_forward +
		                                  BOUND_BY_MEMORY[i].vocabulary_bytes * (double)b->size.vocabulary);
		seconds = measure(b, BOUND_BY_MEMORY[i].run);
		if (seconds > 0.0 && b->copy_bytes_per_s > 0.0)
			printf("%s\t%.2f\tof the copy's speed\n", BOUND_BY_MEMORY[i].name,
			       bytes / seconds / b->copy_bytes_per_s);
		fflush(stdout);
	}
}

/* -- matrix products -- */

static void linear(struct bench *b)
{
	const struct wlb_weight *w = &b->weight;
	b->device->ops->linear(b->device, b->buffers[0], w->out, b->buffers[1], w->in, w, NULL, b->size.tokens);
}

static void linear_d_x(struct bench *b)
{
	const struct wlb_weight *w = &b->weight;
	b->device->ops->linear_d_x(b->device, b->buffers[1], w->in, b->buffers[0], w->out, w, 0, b->size.tokens);
}

static void linear_d_w(struct bench *b)
{
	const struct wlb_weight *w = &b->weight;
	b->device->ops->linear_d_w(b->device, b->buffers[3], b->buffers[0], w->out, b->buffers[1], w->in, 0,
	                           b->size.tokens, w->out, w->in);
}

static void measure_products(struct bench *b)
{
	const int64_t w = b->size.width, f = b->size.feed_forward;
	const struct {
		const char *name;
		int64_t in, out;
	} products[] = {{"qkv", w, w + w / 2}, {"attention_output", w, w}, {"gate_up", w, 2 * f}, {"down", f, w}};
	char name[64];
	for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
		double flops = 2.0 * (double)b->size.tokens * (double)products[i].in * (double)products[i].out;
		b->weight = (struct wlb_weight){b->buffers[2], products[i].out, products[i].in};
		snprintf(name, sizeof(name), "linear %s", products[i].name);
		print_rate(b, name, linear, flops);
		snprintf(name, sizeof(name), "linear_d_x %s", products[i].name);
		print_rate(b, name, linear_d_x, flops);
		snprintf(name, sizeof(name), "linear_d_w %s", products[i].name);
		print_rate(b, name, linear_d_w, flops);
	}
}

/* -- attention -- */

/* q, k and v are columns of one matrix, buffers[0], as are their gradients, buffers[1]. */
static void *column(const struct bench *b, int buffer, int64_t head)
{
	return (char *)b->buffers[buffer] + (size_t)(head * b->shape.head_dim) * wlb_dtype_bytes(b->device->compute);
}

static void attention_forward(struct bench *b)
{
	int64_t k = b->size.heads, v = k + b->size.kv_heads;
	b->device->ops->attention_forward(b->device, b->buffers[2], b->buffers[3], b->buffers[0], column(b, 0, k),
	                                  column(b, 0, v), &b->segments, &b->shape);
}

static void attention_backward(struct bench *b)
{
	int64_t k = b->size.heads, v = k + b->size.kv_heads;
	b->device->ops->attention_backward(b->device, b->buffers[1], column(b, 1, k), column(b, 1, v), b->buffers[4],
	                                   b->buffers[0], column(b, 0, k), column(b, 0, v), b->buffers[2],
	                                   b->buffers[3], &b->segments, &b->shape);
}

/* Returns a copy in device memory, or NULL with *error. */
static void *uploaded(struct bench *b, const void *list, size_t bytes, struct wlb_error *error)
{
	void *memory = b->device->ops->alloc(b->device, bytes, error);
	if (memory != NULL)
		b->device->ops->to_device(b->device, NULL, memory, list, bytes);
	return memory;
}

static void release_segments(struct bench *b)
{
	const void *const all[] = {b->segments.segments, b->segments.query_tiles, b->segments.key_tiles,
	                           b->segments.readers};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		b->device->ops->release(b->device, (void *)all[i]);
	b->segments = (struct wlb_segments){0};
}

/* Makes the segments of documents, one after the other, and their tiles. */
static int set_documents(struct bench *b, int head_dim, const int32_t *lengths, int count, struct wlb_error *error)
{
	struct wlb_segment list[MOST_DOCUMENTS];
	struct wlb_attention_tiles tiles = {0};
	struct wlb_segments *s = &b->segments;
	int32_t at = 0, longest = 0;
	for (int i = 0; i < count; at += lengths[i], i++) {
		list[i] = (struct wlb_segment){at, lengths[i], at, lengths[i], 0};
		longest = lengths[i] > longest ? lengths[i] : longest;
	}
	int64_t stride = (int64_t)(b->size.heads + 2 * b->size.kv_heads) * head_dim;
	b->shape = (struct wlb_attention_shape){.q_tokens = at,
	                                        .k_tokens = at,
	                                        .heads = b->size.heads,
	                                        .kv_heads = b->size.kv_heads,
	                                        .head_dim = head_dim,
	                                        .q_stride = stride,
	                                        .kv_stride = stride,
	                                        .out_stride = (int64_t)b->size.heads * head_dim};
	*s = (struct wlb_segments){.count = count, .max_q = longest, .max_k = longest};
	s->tile_rows = b->device->ops->attention_tile_rows(b->device, head_dim, error);
	int rc = s->tile_rows > 0 ? wlb_attention_tiles_make(&tiles, list, count, s->tile_rows, error) : s->tile_rows;
	if (rc == 0 && s->tile_rows > 0) {
		s->query_tile_count = tiles.query_tiles;
		s->key_tile_count = tiles.key_tiles;
		s->query_tiles = uploaded(b, tiles.queries, (size_t)tiles.query_tiles * sizeof(*tiles.queries), error);
		s->key_tiles = uploaded(b, tiles.keys, (size_t)tiles.key_tiles * sizeof(*tiles.keys), error);
		s->readers = uploaded(b, tiles.readers, (size_t)tiles.reader_count * sizeof(*tiles.readers), error);
		rc = s->query_tiles != NULL && s->key_tiles != NULL && s->readers != NULL ? 0 : -1;
	}
	s->segments = rc == 0 ? uploaded(b, list, (size_t)count * sizeof(*list), error) : NULL;
	rc = rc == 0 && s->segments != NULL ? b->device->ops->synchronize(b->device, error) : -1;
	wlb_attention_tiles_free(&tiles);
	return rc;
}

static void measure_documents(struct bench *b, const char *what, int head_dim, const int32_t *lengths, int count)
{
	struct wlb_error error = {"out of memory"};
	char name[64];
	double pairs = 0.0;
	for (int i = 0; i < count; i++)
		pairs += 0.5 * (double)lengths[i] * ((double)lengths[i] + 1.0);
	double flops = 4.0 * b->size.heads * head_dim * pairs;
	if (set_documents(b, head_dim, lengths, count, &error) < 0) {
		report(b, what, &error);
	} else {
		snprintf(name, sizeof(name), "attention_forward %s", what);
		print_rate(b, name, attention_forward, flops);
		snprintf(name, sizeof(name), "attention_backward %s", what);
		print_rate(b, name, attention_backward, 2.5 * flops);
	}
	release_segments(b);
}

/* One document of each length, documents of which each is half as long as the one before, and four of equal length. */
static void measure_attention(struct bench *b, int tiny)
{
	static const int32_t large[] = {4096, 16384, 32768, 131072}, small[] = {5, 48};
	const int32_t *one = tiny ? small : large, quarter = (int32_t)b->size.tokens / 4;
	const int32_t equal[] = {quarter, quarter, quarter, quarter};
	int32_t packed[MOST_DOCUMENTS], left = (int32_t)b->size.tokens;
	int count = 0;
	char name[48];
	for (size_t i = 0; i < (tiny ? sizeof(small) : sizeof(large)) / sizeof(*one); i++) {
		snprintf(name, sizeof(name), "one document of %d", one[i]);
		measure_documents(b, name, HEAD_DIM, &one[i], 1);
	}
	while (left > 0) {
		packed[count] = left > 1 ? left / 2 : 1;
		left -= packed[count++];
	}
	measure_documents(b, "packed, each half the one before", HEAD_DIM, packed, count);
	snprintf(name, sizeof(name), "four documents of %d", quarter);
	measure_documents(b, name, HEAD_DIM, equal, 4);
	snprintf(name, sizeof(name), "four documents of %d, heads of %d", quarter, SMALL_HEAD_DIM);
	measure_documents(b, name, SMALL_HEAD_DIM, equal, 4);
}

/* -- all -- */

/* Random numbers in [-1, 1): products of zeros, or of rows that repeat, take less power, and so are faster. Each buffer
 * begins elsewhere in the pattern. */
static int fill(struct bench *b, struct wlb_error *error)
{
	uint16_t *pattern = malloc(PATTERN * sizeof(*pattern));
	const size_t bytes = (size_t)b->buffer_elements * sizeof(float), whole = PATTERN * sizeof(*pattern);
	uint32_t state = 1; /* a linear congruential generator (Numerical Recipes) */
	if (pattern == NULL)
		return wlb_fail(error, "out of host memory");
	for (int64_t i = 0; i < PATTERN; i++) {
		state = state * 1664525u + 1013904223u;
		wlb_dtype_store(WLB_BFLOAT16, pattern, i, (double)state / 2147483648.0 - 1.0);
	}
	for (int i = 0; i < BUFFERS; i++) {
		char *to = b->buffers[i];
		const size_t skipped = (size_t)(i * (PATTERN / BUFFERS)) * sizeof(*pattern);
		size_t filled = whole < bytes ? whole : bytes;
		const size_t first = filled < whole - skipped ? filled : whole - skipped;
		b->device->ops->to_device(b->device, NULL, to, (const char *)pattern + skipped, first);
		b->device->ops->to_device(b->device, NULL, to + first, pattern, filled - first);
		for (size_t part; filled < bytes; filled += part) {
			part = bytes - filled < filled ? bytes - filled : filled;
			b->device->ops->copy(b->device, to + filled, to, part);
		}
	}
	int rc = b->device->ops->synchronize(b->device, error);
	free(pattern);
	return rc;
}

/* Every row of logits has a target: a row without one is not read. */
static int make_targets(struct bench *b, struct wlb_error *error)
{
	const int64_t rows = b->size.tokens / 4;
	int32_t *list = malloc((size_t)rows * sizeof(*list));
	if (list == NULL)
		return wlb_fail(error, "out of host memory");
	for (int64_t i = 0; i < rows; i++)
		list[i] = (int32_t)(i * 7919 % b->size.vocabulary);
	b->targets = uploaded(b, list, (size_t)rows * sizeof(*list), error);
	int rc = b->targets != NULL ? b->device->ops->synchronize(b->device, error) : -1;
	free(list);
	return rc;
}

/* Returns the elements of 4 bytes that each buffer needs for every measurement. */
static int64_t most_elements(const struct size *size, int64_t longest)
{
	const int64_t rows = size->tokens * 2 * size->feed_forward, weights = 2 * size->width * size->feed_forward;
	const int64_t attention = longest * (size->heads + 2 * size->kv_heads) * HEAD_DIM;
	int64_t most = rows > weights ? rows : weights;
	return attention > most ? attention : most;
}

static int open_bench(struct bench *b, int tiny, struct wlb_error *error)
{
	const struct wlb_ops *ops;
	*b = (struct bench){.size = tiny ? TINY : LARGE, .most_runs = tiny ? 1 : 20};
	b->device = wlb_device_open_cuda(0, WLB_BFLOAT16, WLB_FLOAT32, error);
	if (b->device == NULL)
		return -1;
	ops = b->device->ops;
	b->buffer_elements = most_elements(&b->size, tiny ? 48 : 131072);
	for (int i = 0; i < BUFFERS; i++)
		if ((b->buffers[i] = ops->alloc(b->device, (size_t)b->buffer_elements * sizeof(float), error)) == NULL)
			return -1;
	b->sum = ops->alloc(b->device, sizeof(double), error);
	b->factor = b->sum != NULL ? ops->alloc(b->device, sizeof(double), error) : NULL;
	b->began = b->factor != NULL ? ops->event_new(b->device, 1, error) : NULL;
	b->ended = b->began != NULL ? ops->event_new(b->device, 1, error) : NULL;
	if (b->ended == NULL)
		return -1;
	ops->clip_factor(b->device, b->factor, b->sum, b->sum, 0.0,
	                 INFINITY); /* 1: with 0 AdamW would change nothing */
	return make_targets(b, error) == 0 ? fill(b, error) : -1;
}

static void close_bench(struct bench *b)
{
	if (b->device == NULL)
		return;
	const struct wlb_ops *ops = b->device->ops;
	for (int i = 0; i < BUFFERS; i++)
		ops->release(b->device, b->buffers[i]);
	ops->release(b->device, b->sum);
	ops->release(b->device, b->factor);
	ops->release(b->device, b->targets);
	ops->event_free(b->device, b->began);
	ops->event_free(b->device, b->ended);
	wlb_device_close(b->device);
}

int main(int count, char **arguments)
{
	struct wlb_error error = {0};
	struct bench b;
	int tiny = count == 2 && strcmp(arguments[1], "--tiny") == 0;
	if (count > 1 && !tiny) {
		fprintf(stderr, "wlb-gpu-speed: '%s': give --tiny or nothing\n", arguments[1]);
		return 2;
	}
	if (open_bench(&b, tiny, &error) == 0) {
		measure_memory(&b);
		if (fill(&b, &error) < 0) /* some operations replace their operands by smaller numbers each time */
			report(&b, "cannot fill the operands again", &error);
		measure_products(&b);
		measure_attention(&b, tiny);
	} else {
		report(&b, "cannot begin", &error);
	}
	close_bench(&b);
	return b.failed;
}
