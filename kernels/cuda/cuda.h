/*
 * Declarations that the files of the CUDA device share: its state and its operations. kernels/ops.h describes each.
 *
 * Operations are queued on one stream, the compute queue. The device belongs to the thread that opened it (CUDA's
 * current device is a property of the thread). Sums are added in an order that depends on the sizes only; there are no
 * float atomics.
 */
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wlb_cuda_linear;

/* A range of device memory that was allocated. */
struct wlb_cuda_block {
	struct wlb_cuda_block *next;
	void *memory;
	size_t bytes;
};

struct wlb_cuda {
	struct wlb_device device;
	char name[24]; /* "cuda:0" */
	int index;
	int capability; /* 10 major + minor */
	int processors; /* multiprocessors */
	cudaStream_t stream;
	struct wlb_cuda_linear *linear; /* the matrix products */
	void *scratch;                  /* of the operation that is queued: reserved, or grown to the largest so far */
	size_t scratch_bytes;
	struct wlb_cuda_block *blocks; /* that are not released */
	int failed;
	struct wlb_error error; /* the first error since the last synchronize() */
};

static inline struct wlb_cuda *wlb_cuda_of(struct wlb_device *device)
{
	return (struct wlb_cuda *)device->state;
}

struct wlb_queue {
	cudaStream_t stream;
};

/* Returns the stream of a queue; NULL names the compute queue. */
static inline cudaStream_t wlb_cuda_stream(struct wlb_device *device, struct wlb_queue *queue)
{
	return queue != NULL ? queue->stream : wlb_cuda_of(device)->stream;
}

/* Keeps the first error, after the device's name, until synchronize() reports it. */
void wlb_cuda_fail(struct wlb_device *device, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Keeps the first error, with the operation's name and CUDA's text, until synchronize() reports it. Returns 1 where
 * `status` is no error, else 0. */
int wlb_cuda_check(struct wlb_device *device, cudaError_t status, const char *operation);

/* At least `bytes` of device memory, valid for operations queued before the next call, not cleared. Beyond what is
 * reserved it allocates, for which the host waits. Returns NULL if out of memory: the error is kept for synchronize(),
 * and the operation must return without effect. */
void *wlb_cuda_scratch(struct wlb_device *device, size_t bytes, const char *operation);

/* -- in_use.c -- */
/* Keeps a status that is an error, for wlb_cuda_is_in_use. */
void wlb_cuda_note_error(cudaError_t status);

/* The scratch memory that an operation needs for at most so many rows of this width, or in any case. */
size_t wlb_cuda_embedding_scratch_bytes(int64_t rows, int64_t width);
size_t wlb_cuda_rmsnorm_scratch_bytes(int64_t rows, int64_t width);
size_t wlb_cuda_cross_entropy_scratch_bytes(int64_t rows);
size_t wlb_cuda_attention_scratch_bytes(int64_t rows, int heads);
size_t wlb_cuda_sum_squares_scratch_bytes(void);
/* Of sums of that many columns at most. */
size_t wlb_cuda_columns_scratch_bytes(int64_t columns);

/* -- memory.c -- */
/* Allocates `bytes` of device memory, which is not cleared. Returns NULL on failure, which is no error of the device:
 * the caller reports it. wlb_cuda_free frees it and waits for everything that is queued; NULL allowed. */
void *wlb_cuda_malloc(struct wlb_device *device, size_t bytes, struct wlb_error *error);
cudaError_t wlb_cuda_free(struct wlb_device *device, void *memory);
void *wlb_cuda_alloc(struct wlb_device *device, size_t bytes, struct wlb_error *error);
void wlb_cuda_release(struct wlb_device *device, void *memory);
void *wlb_cuda_alloc_host(struct wlb_device *device, size_t bytes, struct wlb_error *error);
void wlb_cuda_release_host(struct wlb_device *device, void *memory);
void wlb_cuda_to_device(struct wlb_device *device, struct wlb_queue *queue, void *to, const void *from_host,
                        size_t bytes);
void wlb_cuda_to_host_start(struct wlb_device *device, struct wlb_queue *queue, void *to_host, const void *from,
                            size_t bytes);
void wlb_cuda_to_host(struct wlb_device *device, void *to_host, const void *from, size_t bytes);
void wlb_cuda_copy(struct wlb_device *device, void *to, const void *from, size_t bytes);
void wlb_cuda_zero(struct wlb_device *device, void *memory, size_t bytes);
int wlb_cuda_synchronize(struct wlb_device *device, struct wlb_error *error);
/* Counts a call for which the host waits (wlb_device.host_waits). */
void wlb_cuda_count_host_wait(struct wlb_device *device);
/* Returns 0, or -1 with the first error that was kept, which is then forgotten. */
int wlb_cuda_report(struct wlb_device *device, struct wlb_error *error);

/* -- queue.c -- */
struct wlb_queue *wlb_cuda_queue_new(struct wlb_device *device, int high_priority, struct wlb_error *error);
void wlb_cuda_queue_free(struct wlb_device *device, struct wlb_queue *queue);
void *wlb_cuda_queue_handle(struct wlb_device *device, struct wlb_queue *queue);
struct wlb_event *wlb_cuda_event_new(struct wlb_device *device, int timed, struct wlb_error *error);
void wlb_cuda_event_free(struct wlb_device *device, struct wlb_event *event);
void wlb_cuda_event_record(struct wlb_device *device, struct wlb_event *event, struct wlb_queue *queue);
void wlb_cuda_queue_wait(struct wlb_device *device, struct wlb_queue *queue, struct wlb_event *event);
int wlb_cuda_event_wait(struct wlb_device *device, struct wlb_event *event, struct wlb_error *error);
int wlb_cuda_event_done(struct wlb_device *device, struct wlb_event *event);
double wlb_cuda_event_elapsed_s(struct wlb_device *device, struct wlb_event *from, struct wlb_event *to);

/* -- linear.c: linear.h with the device's types -- */
void wlb_cuda_linear_op(struct wlb_device *device, void *y, int64_t y_stride, const void *x, int64_t x_stride,
                        const struct wlb_weight *w, const void *residual, int64_t n);
void wlb_cuda_linear_d_x_op(struct wlb_device *device, void *d_x, int64_t d_x_stride, const void *d_y,
                            int64_t d_y_stride, const struct wlb_weight *w, int add, int64_t n);
void wlb_cuda_linear_d_w_op(struct wlb_device *device, void *d_w, const void *d_y, int64_t d_y_stride, const void *x,
                            int64_t x_stride, int add, int64_t n, int64_t out, int64_t in);

/* -- attention_op.c: attention.h with the device's type -- */
int wlb_cuda_attention_tiles(const struct wlb_device *device, int head_dim, struct wlb_error *error);
void wlb_cuda_attention_forward_op(struct wlb_device *device, void *out, void *lse, const void *q, const void *k,
                                   const void *v, const struct wlb_segments *segments,
                                   const struct wlb_attention_shape *shape);
void wlb_cuda_attention_backward_op(struct wlb_device *device, void *d_q, void *d_k, void *d_v, const void *d_out,
                                    const void *q, const void *k, const void *v, const void *out, const void *lse,
                                    const struct wlb_segments *segments, const struct wlb_attention_shape *shape);

/* -- one .cu file for each group -- */
void wlb_cuda_embedding_forward(struct wlb_device *device, void *out, const void *table, const int32_t *ids,
                                int64_t tokens, int64_t width, int64_t first, int64_t count);
/* Only rows of d_table of which there is a token are written. It sorts the tokens, without the host. */
void wlb_cuda_embedding_backward(struct wlb_device *device, void *d_table, const void *d_out, const int32_t *ids,
                                 int64_t tokens, int64_t width, int64_t first, int64_t count);
/* sum = x + residual, out = sum / rms(sum) (weight + addend), rstd master; residual NULL: the sum is x and is not
 * written. `sum` may be x or residual. */
void wlb_cuda_rmsnorm_forward(struct wlb_device *device, void *out, void *rstd, void *sum, const void *x,
                              const void *residual, const void *weight, double addend, int64_t tokens, int64_t width,
                              double epsilon);
void wlb_cuda_rmsnorm_backward(struct wlb_device *device, void *d_x, void *d_weight, const void *d_out, const void *x,
                               const void *weight, double addend, const void *rstd, int64_t tokens, int64_t width);
void wlb_cuda_add_bias(struct wlb_device *device, void *y, int64_t stride, const void *bias, int64_t n, int64_t width);
void wlb_cuda_bias_backward(struct wlb_device *device, void *d_bias, const void *d_y, int64_t stride, int64_t n,
                            int64_t width);
void wlb_cuda_group_norm_sums(struct wlb_device *device, void *sums, const void *x, int64_t x_stride, const void *d,
                              int64_t d_stride, const void *weight, const struct wlb_norm_groups *groups);
void wlb_cuda_group_norm_forward(struct wlb_device *device, void *out, int64_t out_stride, const void *x,
                                 int64_t x_stride, const void *squares, const void *weight,
                                 const struct wlb_norm_groups *groups);
void wlb_cuda_group_norm_backward(struct wlb_device *device, void *d, int64_t d_stride, void *d_weight, const void *x,
                                  int64_t x_stride, const void *squares, const void *products, const void *weight,
                                  const struct wlb_norm_groups *groups);
/* angles (master) [tokens, 2 pairs]: of each row the cosines of its position, then the sines */
void wlb_cuda_rope_angles(struct wlb_device *device, void *angles, const int32_t *positions, int64_t tokens,
                          const double *frequencies, int pairs, double scale);
/* Rotates the first 2 pairs elements of each of the heads in the first columns of x[tokens, stride] in place; direction
 * +1 or -1. */
void wlb_cuda_rope(struct wlb_device *device, void *x, int64_t stride, const void *angles, int64_t tokens, int heads,
                   int head_dim, int pairs, int direction);
/* gate_up [n, 2 width]: gate, then up; out [n, width] */
void wlb_cuda_swiglu_forward(struct wlb_device *device, void *out, const void *gate_up, int64_t n, int64_t width);
/* gate_up is replaced by its gradient, and d_out, the gradient of out, by out. */
void wlb_cuda_swiglu_backward(struct wlb_device *device, void *gate_up, void *d_out, int64_t n, int64_t width);
/* As these two, with GELU for SiLU. */
void wlb_cuda_geglu_forward(struct wlb_device *device, void *out, const void *gate_up, int64_t n, int64_t width);
void wlb_cuda_geglu_backward(struct wlb_device *device, void *gate_up, void *d_out, int64_t n, int64_t width);
void wlb_cuda_cross_entropy_statistics(struct wlb_device *device, void *statistics, const void *logits,
                                       const int32_t *targets, int64_t tokens, int64_t first, int64_t count);
void wlb_cuda_cross_entropy_gradient(struct wlb_device *device, double *loss_sum, void *logits, const void *statistics,
                                     int parts, const int32_t *targets, int64_t tokens, int64_t first, int64_t count,
                                     double scale, double softcap);
/* out[i] = x[rows[i]]; strides in elements; rows NULL: row i; negative: a row of 0 */
void wlb_cuda_gather_rows(struct wlb_device *device, void *out, int64_t out_stride, const void *x, int64_t x_stride,
                          const int32_t *rows, int64_t count, int64_t width);
/* CUDA's status for a kernel of the program: an error where it was not built for the GPU of this thread. */
cudaError_t wlb_cuda_find_kernel(void);
void wlb_cuda_add(struct wlb_device *device, void *y, const void *x, int64_t n);
void wlb_cuda_scale(struct wlb_device *device, void *x, double factor, int64_t n);
void wlb_cuda_softcap(struct wlb_device *device, void *x, double cap, int64_t n);
void wlb_cuda_add_gradients(struct wlb_device *device, void *y, const void *x, int64_t n);
void wlb_cuda_sum_squares(struct wlb_device *device, double *sum, const void *x, int64_t n);
void wlb_cuda_clip_factor(struct wlb_device *device, double *factor, const double *sum_squares, const double *loss_sum,
                          double clip, double most_norm);
void wlb_cuda_adamw(struct wlb_device *device, void *param, void *master, const void *grad, void *m, void *v, int64_t n,
                    const struct wlb_adamw *adamw, const double *factor);

#ifdef __cplusplus
}
#endif

#endif
