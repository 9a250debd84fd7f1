/* Attention of kernels/ops.h: that of attention.h with the element type of the device and tiles of the loader. */
#include "kernels/cuda/attention.h"
#include "kernels/cuda/cuda.h"

static int is_bf16(const struct wlb_device *device)
{
	return device->compute == WLB_BFLOAT16;
}

int wlb_cuda_attention_tiles(const struct wlb_device *device, int head_dim, struct wlb_error *error)
{
	const int rows = wlb_cuda_attention_tile_rows(is_bf16(device), head_dim);
	if (rows > 0)
		return rows;
	return wlb_fail(error, "head_dim %d: device %s has 64, 96, 128 and 256: choose another model or the CPU device",
	                head_dim, device->name);
}

static struct wlb_cuda_rows rows_of(const void *data, int64_t stride)
{
	return (struct wlb_cuda_rows){(void *)data, stride};
}

static struct wlb_cuda_attention arguments(const struct wlb_device *device, const struct wlb_segments *segments,
                                           const struct wlb_attention_shape *shape)
{
	return (struct wlb_cuda_attention){
		.is_bf16 = is_bf16(device),
		.heads = shape->heads,
		.kv_heads = shape->kv_heads,
		.head_dim = shape->head_dim,
		.segments = segments->segments,
		.query_tiles = segments->query_tiles,
		.key_tiles = segments->key_tiles,
		.readers = segments->readers,
		.query_tile_count = segments->query_tile_count,
		.key_tile_count = segments->key_tile_count,
		.softcap = (float)shape->softcap,
		.tile_rows = segments->tile_rows,
		.window = shape->window,
		.q_rows = shape->q_tokens,
		.k_rows = shape->k_tokens,
	};
}

void wlb_cuda_attention_forward_op(struct wlb_device *device, void *out, void *lse, const void *q, const void *k,
                                   const void *v, const struct wlb_segments *segments,
                                   const struct wlb_attention_shape *shape)
{
	struct wlb_error error;
	struct wlb_cuda_attention a = arguments(device, segments, shape);
	a.q = rows_of(q, shape->q_stride);
	a.k = rows_of(k, shape->kv_stride);
	a.v = rows_of(v, shape->kv_stride);
	a.out = rows_of(out, shape->out_stride);
	a.lse = lse;
	if (wlb_cuda_attention_forward(device, &a, &error) < 0)
		wlb_cuda_fail(device, "%s", error.message);
}

/* A float of each row and head. */
size_t wlb_cuda_attention_scratch_bytes(int64_t rows, int heads)
{
	return (size_t)rows * (size_t)heads * sizeof(float);
}

void wlb_cuda_attention_backward_op(struct wlb_device *device, void *d_q, void *d_k, void *d_v, const void *d_out,
                                    const void *q, const void *k, const void *v, const void *out, const void *lse,
                                    const struct wlb_segments *segments, const struct wlb_attention_shape *shape)
{
	struct wlb_error error;
	struct wlb_cuda_attention a = arguments(device, segments, shape);
	const size_t bytes = wlb_cuda_attention_scratch_bytes(shape->q_tokens, shape->heads);
	a.q = rows_of(q, shape->q_stride);
	a.k = rows_of(k, shape->kv_stride);
	a.v = rows_of(v, shape->kv_stride);
	a.out = rows_of(out, shape->out_stride);
	a.lse = (float *)lse;
	a.d_q = rows_of(d_q, shape->q_stride);
	a.d_k = rows_of(d_k, shape->kv_stride);
	a.d_v = rows_of(d_v, shape->kv_stride);
	a.d_out = rows_of(d_out, shape->out_stride);
	a.delta = wlb_cuda_scratch(device, bytes > 0 ? bytes : 1, "attention_backward");
	if (a.delta != NULL && wlb_cuda_attention_backward(device, &a, &error) < 0)
		wlb_cuda_fail(device, "%s", error.message);
}
