#include "worker/calibrate/attention.h"

#include "kernels/attention_tiles.h"
#include "worker/calibrate/axis.h"
#include "worker/calibrate/filled_memory.h"
#include "worker/calibrate/stopwatch.h"

/* Four query heads share a key head, as in Llama 3. */
enum { HEADS = 8, KV_HEADS = 2, PROBE_TOKENS = 256, SEGMENTS = 16 };

/* The runs of a point in a round: one that is not measured and one that is. */
static const double RUNS = 2.0;

/* The buffers of a launch of attention, large enough for every point of the grid. */
struct attention {
	struct wlb_segments segments;
	struct wlb_segment *list; /* device memory; [SEGMENTS] */
	struct wlb_attention_tiles tiles;
	void *tile_memory[3]; /* device memory: of queries, of keys, and the readers of these */
	struct wlb_attention_shape shape;
	void *q, *out, *d_q, *d_out; /* [q_tokens, HEADS, head_dim] */
	void *k, *v, *d_k, *d_v;     /* [k_tokens, KV_HEADS, head_dim] */
	void *lse;
};

static void forward(struct wlb_device *device, void *context)
{
	const struct attention *a = context;
	device->ops->attention_forward(device, a->out, a->lse, a->q, a->k, a->v, &a->segments, &a->shape);
}

static void backward(struct wlb_device *device, void *context)
{
	const struct attention *a = context;
	device->ops->attention_backward(device, a->d_q, a->d_k, a->d_v, a->d_out, a->q, a->k, a->v, a->out, a->lse,
	                                &a->segments, &a->shape);
}

static void release(struct wlb_device *device, struct attention *a)
{
	void *const all[] = {a->list, a->q, a->out, a->d_q, a->d_out, a->k, a->v, a->d_k, a->d_v, a->lse};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		device->ops->release(device, all[i]);
	for (int i = 0; i < 3; i++)
		device->ops->release(device, a->tile_memory[i]);
	wlb_attention_tiles_free(&a->tiles);
}

/* Sets the most rows of queries and of keys that a point of the grid needs. */
static void most_rows(int most, int64_t *q_rows, int64_t *k_rows)
{
	double points[WLB_AXIS_POINTS];
	int count = wlb_axis_fill(WLB_AXIS_TOKENS_MIN, most, points);
	*q_rows = *k_rows = 0;
	for (int i = 0; i < count; i++) {
		int64_t segments = wlb_axis_segments(points[i]), q = segments * (int64_t)points[i], k = segments * most;
		*q_rows = q > *q_rows ? q : *q_rows;
		*k_rows = k > *k_rows ? k : *k_rows;
	}
}

static int allocate(struct wlb_device *device, struct attention *a, int most, int head_dim, struct wlb_error *error)
{
	int64_t q_rows, k_rows;
	most_rows(most, &q_rows, &k_rows);
	int64_t q = q_rows * HEADS * head_dim, k = k_rows * KV_HEADS * head_dim;
	const struct {
		void **memory;
		int64_t count;
	} all[] = {{&a->q, q}, {&a->out, q}, {&a->d_q, q}, {&a->d_out, q},
	           {&a->k, k}, {&a->v, k},   {&a->d_k, k}, {&a->d_v, k}};
	*a = (struct attention){.shape = {.heads = HEADS,
	                                  .kv_heads = KV_HEADS,
	                                  .head_dim = head_dim,
	                                  .q_stride = HEADS * head_dim,
	                                  .kv_stride = KV_HEADS * head_dim,
	                                  .out_stride = HEADS * head_dim}};
	a->list = device->ops->alloc(device, SEGMENTS * sizeof(*a->list), error);
	if (a->list == NULL)
		return -1;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if ((*all[i].memory = wlb_alloc_filled(device, device->compute, all[i].count, error)) == NULL)
			return -1;
	a->lse = wlb_alloc_filled(device, device->master, q_rows * HEADS, error);
	return a->lse != NULL ? 0 : -1;
}

/* Sets the tiles of `list`, a->segments in host memory, where the device needs them. */
static int set_tiles(struct wlb_device *device, struct attention *a, const struct wlb_segment *list,
                     struct wlb_error *error)
{
	struct wlb_attention_tiles *tiles = &a->tiles;
	struct wlb_segments *segments = &a->segments;
	segments->tile_rows = device->ops->attention_tile_rows(device, a->shape.head_dim, error);
	if (segments->tile_rows <= 0)
		return segments->tile_rows;
	if (wlb_attention_tiles_make(tiles, list, segments->count, segments->tile_rows, error) < 0)
		return -1;
	const void *const lists[] = {tiles->queries, tiles->keys, tiles->readers};
	const size_t bytes[] = {(size_t)tiles->query_tiles * sizeof(*tiles->queries),
	                        (size_t)tiles->key_tiles * sizeof(*tiles->keys),
	                        (size_t)tiles->reader_count * sizeof(*tiles->readers)};
	for (int i = 0; i < 3; i++) {
		device->ops->release(device, a->tile_memory[i]);
		a->tile_memory[i] = device->ops->alloc(device, bytes[i], error);
		if (a->tile_memory[i] == NULL)
			return -1;
		device->ops->to_device(device, NULL, a->tile_memory[i], lists[i], bytes[i]);
	}
	segments->query_tiles = a->tile_memory[0];
	segments->key_tiles = a->tile_memory[1];
	segments->readers = a->tile_memory[2];
	segments->query_tile_count = tiles->query_tiles;
	segments->key_tile_count = tiles->key_tiles;
	return 0;
}

/* Makes the launch one of equal segments, each with keys of its own. */
static int set_point(struct wlb_device *device, struct attention *a, int q_tokens, int k_tokens,
                     struct wlb_error *error)
{
	struct wlb_segment list[SEGMENTS] = {0};
	int count = wlb_axis_segments(q_tokens);
	for (int i = 0; i < count; i++)
		list[i] = (struct wlb_segment){i * q_tokens, q_tokens, i * k_tokens, k_tokens, k_tokens - q_tokens};
	device->ops->to_device(device, NULL, a->list, list, (size_t)count * sizeof(*list));
	a->segments = (struct wlb_segments){.segments = a->list, .count = count, .max_q = q_tokens, .max_k = k_tokens};
	a->shape.q_tokens = (int64_t)count * q_tokens;
	a->shape.k_tokens = (int64_t)count * k_tokens;
	return set_tiles(device, a, list, error);
}

int wlb_choose_attention(struct wlb_device *device, struct wlb_comm *world, int head_dim, double limit_s, int rounds,
                         struct wlb_attention_rates *rates, struct wlb_error *error)
{
	struct attention probe;
	double elapsed_s = 0.0;
	int rc = allocate(device, &probe, PROBE_TOKENS, head_dim, error);
	if (rc == 0)
		rc = set_point(device, &probe, PROBE_TOKENS, PROBE_TOKENS, error);
	if (rc == 0)
		rc = wlb_shortest(device, forward, &probe, &elapsed_s, error);
	release(device, &probe);
	if (rc < 0 || wlb_comm_all_reduce_double(world, &elapsed_s, 1, WLB_MAX, error) < 0)
		return -1;
	double width = HEADS * head_dim, pairs = wlb_causal_pairs(PROBE_TOKENS, PROBE_TOKENS);
	double flops_per_s = 4.0 * width * wlb_axis_segments(PROBE_TOKENS) * pairs / elapsed_s;
	int most = wlb_axis_max(wlb_axis_attention_flops, RUNS * rounds * width, flops_per_s, limit_s);
	*rates = (struct wlb_attention_rates){0};
	rates->q_count = wlb_axis_fill(WLB_AXIS_TOKENS_MIN, most, rates->q_tokens);
	rates->k_count = wlb_axis_fill(WLB_AXIS_TOKENS_MIN, most, rates->k_tokens);
	return 0;
}

/* Sets the rates of the point (i, j) of the grid. */
static int measure_point(struct wlb_device *device, struct attention *a, double point_s,
                         struct wlb_attention_rates *rates, int i, int j, struct wlb_error *error)
{
	double q = rates->q_tokens[i], k = rates->k_tokens[j], forward_s, backward_s;
	double flops = 4.0 * HEADS * a->shape.head_dim * wlb_axis_segments(q) * wlb_causal_pairs(q, k);
	if (set_point(device, a, (int)q, (int)k, error) < 0 ||
	    wlb_stopwatch(device, forward, a, 0.3 * point_s, &forward_s, error) < 0 ||
	    wlb_stopwatch(device, backward, a, 0.7 * point_s, &backward_s, error) < 0)
		return wlb_fail_in(error, "attention of %g queries, %g keys", q, k);
	rates->forward_flops_per_s[i * rates->k_count + j] = flops / forward_s;
	rates->backward_flops_per_s[i * rates->k_count + j] = 2.5 * flops / backward_s;
	return 0;
}

int wlb_measure_attention(struct wlb_device *device, int head_dim, double limit_s, struct wlb_attention_rates *rates,
                          struct wlb_error *error)
{
	struct attention attention;
	int most = (int)rates->k_tokens[rates->k_count - 1];
	double point_s = limit_s / (0.5 * rates->q_count * (rates->q_count + 1));
	int rc = allocate(device, &attention, most, head_dim, error);
	for (int i = 0; rc == 0 && i < rates->q_count; i++)
		for (int j = i; rc == 0 && j < rates->k_count; j++)
			rc = measure_point(device, &attention, point_s, rates, i, j, error);
	release(device, &attention);
	return rc;
}
