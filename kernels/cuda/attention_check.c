/* Checks the arguments of attention. */
#include "kernels/cuda/attention_check.h"

#include "kernels/cuda/attention_hopper.h"
#include "kernels/cuda/cuda.h"

/* attention.cuh has the same numbers, which shared memory limits; the passes are compiled for these alone. */
int wlb_cuda_attention_tile_rows(int is_bf16, int head_dim)
{
	if (head_dim != 64 && head_dim != 96 && head_dim != 128 && head_dim != 256)
		return 0;
	return (is_bf16 ? 128 : 64) / (head_dim > 128 ? 2 : 1);
}

int wlb_cuda_attention_is_hopper(const struct wlb_device *device, const struct wlb_cuda_attention *a)
{
	return wlb_cuda_of((struct wlb_device *)device)->capability == 90 && a->is_bf16 &&
	       (a->head_dim == 64 || a->head_dim == 128) && a->softcap == 0;
}

/* Copies and vectors are of 16 bytes. */
static int check_rows(const char *name, const struct wlb_cuda_rows *rows, int64_t columns, int is_bf16,
                      struct wlb_error *error)
{
	const int64_t piece = is_bf16 ? 8 : 4;
	if (rows->stride < columns)
		return wlb_fail(error, "attention: %s has rows of %lld elements and a stride of %lld", name,
		                (long long)columns, (long long)rows->stride);
	if (rows->stride % piece != 0 || (uintptr_t)rows->data % 16 != 0)
		return wlb_fail(error,
		                "attention: %s at %p with a stride of %lld elements; both must be a multiple of 16 "
		                "bytes",
		                name, rows->data, (long long)rows->stride);
	return 0;
}

static int check_shape(const struct wlb_cuda_attention *a, struct wlb_error *error)
{
	const int rows = wlb_cuda_attention_tile_rows(a->is_bf16, a->head_dim);
	if (rows == 0)
		return wlb_fail(error,
		                "attention: head_dim %d; a CUDA device has 64, 96, 128 and 256: choose another model "
		                "or the CPU device",
		                a->head_dim);
	if (a->kv_heads < 1 || a->heads < a->kv_heads || a->heads % a->kv_heads != 0)
		return wlb_fail(error, "attention: %d heads with %d KV heads; the second must divide the first",
		                a->heads, a->kv_heads);
	if (a->tile_rows != rows)
		return wlb_fail(error, "attention: tiles of %d rows; they must be of %d for head_dim %d", a->tile_rows,
		                rows, a->head_dim);
	if (a->query_tile_count < 0 || a->key_tile_count < 0 || (int64_t)a->query_tile_count * a->heads > INT32_MAX ||
	    (int64_t)a->key_tile_count * a->heads > INT32_MAX)
		return wlb_fail(error, "attention: %d tiles of queries and %d of keys, for each of %d heads",
		                a->query_tile_count, a->key_tile_count, a->heads);
	return 0;
}

int wlb_cuda_attention_check(const struct wlb_cuda_attention *a, struct wlb_error *error)
{
	if (check_shape(a, error) != 0)
		return -1;
	const int64_t q = (int64_t)a->heads * a->head_dim, k = (int64_t)a->kv_heads * a->head_dim;
	if (check_rows("q", &a->q, q, a->is_bf16, error) != 0 || check_rows("k", &a->k, k, a->is_bf16, error) != 0 ||
	    check_rows("v", &a->v, k, a->is_bf16, error) != 0 || check_rows("out", &a->out, q, a->is_bf16, error) != 0)
		return -1;
	return 0;
}

int wlb_cuda_attention_check_backward(const struct wlb_cuda_attention *a, struct wlb_error *error)
{
	const int64_t q = (int64_t)a->heads * a->head_dim, k = (int64_t)a->kv_heads * a->head_dim;
	if (check_rows("d_out", &a->d_out, q, a->is_bf16, error) != 0 ||
	    check_rows("d_q", &a->d_q, q, a->is_bf16, error) != 0 ||
	    check_rows("d_k", &a->d_k, k, a->is_bf16, error) != 0 ||
	    check_rows("d_v", &a->d_v, k, a->is_bf16, error) != 0)
		return -1;
	return 0;
}
