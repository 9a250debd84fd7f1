/*
 * The operations of a device. Two devices implement this header: cpu/ (OpenBLAS, OpenMP; float32 and float64 from one
 * source) and cuda/ (CUDA, cuBLASLt).
 *
 * Conventions
 *  - Every pointer to data is device memory unless its name ends in _host. On the CPU device the two are the same; code
 * outside cpu/ must not assume so.
 *  - Activations are row-major [tokens, features]; weights are [out, in] as Hugging Face stores them,
 *    so a linear layer is y = x W^T. A stride is that of rows, in elements: columns of a wider matrix can be an
 *    operand. Where an operation has no stride its rows follow each other.
 *  - A device has two element types: `compute`, of the weights in use and of activations, and `master`, of what sums
 *    over many values or steps (master weights, gradients of weights, moments, statistics). Gradients of weights, and
 *    of nothing else, may be of type `compute` instead: their type is `gradients`. On the CPU the two are
 *    the same, float or double; "real" is that type.
 *    Pointers are to elements of type `compute` unless they are said to be of type `master` or `gradients`.
 *  - Backward operations *add* to weight gradients (they accumulate over micro-batches) and
 *    *overwrite* activation gradients, unless said otherwise.
 *  - Operations are queued in order on the compute queue and may be asynchronous; synchronize() reports their errors.
 *  - A device may have further queues, for copies and messages. Work of one queue is in order; events order the work of
 *    different queues. Where a queue is an argument, NULL names the compute queue.
 *  - Results do not depend on anything but the inputs, the thread count and the kind of processor:
 *    reductions have a fixed order.
 *
 * Why the operations are these
 *  - One operation is one pass over memory on a GPU, or one product that a library computes at its best speed.
 *  - bfloat16 has 8 bits of precision: enough for `compute`, not for `main`. Gradients of weights of type `compute`
 *    take half the memory, and half the bytes of their reduction. What adds to them sums a micro-batch in float32
 *    and rounds once; reduce-scatter rounds each addition. A checkpoint has masters and moments alone, so it does not
 *    depend on this type.
 *  - A linear layer is three operations and not a general product, because they differ in what they add: the residual;
 *    nothing or the gradient so far; always the gradient of the weights. A weight is a struct, where scales of 8-bit
 *    values can be added without another argument.
 *  - Queries, keys and values are one product, and so are gate and up: wider products run closer to the peak, and the
 *    input is read once. Strides let attention and RoPE work on columns of the result in place.
 *  - The angles of RoPE are made once in a pass, since sines in double precision take longer than the rotation.
 *    Their frequencies come from the host: families of models scale them in many ways.
 */
#ifndef KERNELS_OPS_H
#define KERNELS_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

#ifdef __cplusplus
extern "C" {
#endif

enum wlb_dtype { WLB_FLOAT32, WLB_FLOAT64, WLB_BFLOAT16 };

/* Bytes of one element; 0 for a value that is no element type. */
size_t wlb_dtype_bytes(enum wlb_dtype dtype);
const char *wlb_dtype_name(enum wlb_dtype dtype); /* "float32", "float64", "bfloat16"; "unknown" */
/* Returns 0, or -1 for a value that is no element type. */
int wlb_dtype_check(enum wlb_dtype dtype, struct wlb_error *error);
/* array_host[index] = value, rounded to the element type, which must be one. */
void wlb_dtype_store(enum wlb_dtype dtype, void *array_host, int64_t index, double value);
/* Returns array_host[index]; NaN for a value that is no element type. */
double wlb_dtype_load(enum wlb_dtype dtype, const void *array_host, int64_t index);

/* Queries [q_start, q_start + q_count) of one document against its keys [k_start, k_start + k_count).
 * Query i has position q_offset + i in the key range and attends to the keys 0 .. q_offset + i (causal), of which a
 * window leaves the last ones. A whole document is {s, n, s, n, 0}. */
struct wlb_segment {
	int32_t q_start;
	int32_t q_count;
	int32_t k_start;
	int32_t k_count;
	int32_t q_offset;
};

/* A block of work of attention (kernels/attention_tiles.h): the queries [first, first + tile_rows) of a segment, or up
 * to its last. */
struct wlb_query_tile {
	int32_t segment;
	int32_t first;
};

/* The keys [k_start, k_start + k_count), rows of k, and the segments that see at least one of them, in ascending order:
 * readers[first_reader .. first_reader + readers). */
struct wlb_key_tile {
	int32_t k_start;
	int32_t k_count;
	int32_t first_reader;
	int32_t readers;
};

struct wlb_segments {
	const struct wlb_segment *segments; /* device memory */
	int count;
	int max_q; /* largest q_count */
	int max_k;
	/* Tiles of wlb_ops.attention_tile_rows() rows, in device memory; none where that is 0. */
	int tile_rows;
	int query_tile_count;
	int key_tile_count;
	const struct wlb_query_tile *query_tiles; /* [query_tile_count] */
	const struct wlb_key_tile *key_tiles;     /* [key_tile_count] */
	const int32_t *readers;
};

/* The gradient of an array has the array's stride. */
struct wlb_attention_shape {
	int64_t q_tokens; /* rows of q, out */
	int64_t k_tokens; /* rows of k, v */
	int heads;        /* query heads */
	int kv_heads;     /* divides heads */
	int head_dim;
	int64_t q_stride;
	int64_t kv_stride; /* of k, and of v */
	int64_t out_stride;
	int window;     /* keys that a query attends to at most, its own among them: the last ones; 0: no limit */
	double softcap; /* c: a scaled score s becomes c tanh(s / c) (Gemma 2, 2024); 0: it stays */
};

/* The matrix of a linear layer, or several of the same input one below the other, which are multiplied as one. */
struct wlb_weight {
	const void *values; /* [out, in] */
	int64_t out;
	int64_t in;
};

/* Groups of columns that are normed. */
struct wlb_norm_groups {
	int64_t rows;
	int groups;
	int64_t width;  /* columns of a group */
	double total;   /* numbers that a sum is of: `width`, or more where other ranks have added theirs */
	double epsilon; /* of the norm */
	double weight_addend;
};

struct wlb_queue; /* of work that a device does in order: a CUDA stream on GPUs */

struct wlb_adamw {
	double lr;
	double beta1;
	double beta2;
	double epsilon;
	double weight_decay;     /* decoupled (Loshchilov & Hutter 2019) */
	int64_t step;            /* 1 for the first update: bias correction */
	struct wlb_queue *queue; /* that the update is queued on; NULL: the compute queue */
};

/* The largest shapes that occur in a run: they determine how much memory of their own the operations need. */
struct wlb_largest_pass {
	int64_t rows;    /* of any operation, on this rank */
	int64_t width;   /* of the residual stream */
	int heads;       /* query heads of this rank */
	int64_t columns; /* of a bias, or of norms of queries and keys; 0: the model has neither */
};

struct wlb_device;
struct wlb_event; /* a moment in a queue: the end of all work that was queued there before it was recorded */

/* The operations of one device and element type. */
struct wlb_ops {
	void (*close)(struct wlb_device *); /* wlb_device_close() calls it */

	/* -- memory -- */
	void *(*alloc)(struct wlb_device *, size_t bytes,
	               struct wlb_error *);           /* zeroed, 64-byte aligned; NULL on error */
	void (*release)(struct wlb_device *, void *); /* NULL allowed */
	/* Memory of the host that the device copies from and to without the host waiting (pinned); 64-byte aligned, not
	 * cleared. NULL on error. */
	void *(*alloc_host)(struct wlb_device *, size_t bytes, struct wlb_error *);
	void (*release_host)(struct wlb_device *, void *); /* NULL allowed */
	/* Copies on the queue. Memory of alloc_host must not change until an event recorded behind the copy is reached;
	 * other host memory may be used again when the call returns. */
	void (*to_device)(struct wlb_device *, struct wlb_queue *, void *to, const void *from_host, size_t bytes);
	/* Copies on the queue to memory of alloc_host, which holds the data when an event recorded behind the copy is
	 * reached. */
	void (*to_host_start)(struct wlb_device *, struct wlb_queue *, void *to_host, const void *from, size_t bytes);
	void (*to_host)(struct wlb_device *, void *to_host, const void *from,
	                size_t bytes); /* on the compute queue, synchronous */
	void (*copy)(struct wlb_device *, void *to, const void *from, size_t bytes); /* ranges that do not overlap */
	void (*zero)(struct wlb_device *, void *, size_t bytes);
	int (*synchronize)(struct wlb_device *, struct wlb_error *); /* 0, or -1 with the first queued error */
	/* Reserves the memory that operations need for themselves, so that none of at most these shapes allocates. To
	 * be called before the first pass; an operation of a larger shape waits and allocates. Returns -1 with the
	 * bytes if out of memory. NULL: the device keeps what its first operations needed. */
	int (*reserve)(struct wlb_device *, const struct wlb_largest_pass *, struct wlb_error *);

	/* -- queues and events -- on the CPU device, whose operations have ended when they return, queues are empty
	 * objects, and record stores the clock. */
	struct wlb_queue *(*queue_new)(struct wlb_device *, int high_priority, struct wlb_error *); /* NULL on error */
	void (*queue_free)(struct wlb_device *, struct wlb_queue *); /* its work should have ended; NULL allowed */
	/* The queue as libraries of the device's maker know it (a cudaStream_t); NULL on the CPU device. */
	void *(*queue_handle)(struct wlb_device *, struct wlb_queue *);
	struct wlb_event *(*event_new)(struct wlb_device *, int timed, struct wlb_error *); /* NULL on error */
	void (*event_free)(struct wlb_device *, struct wlb_event *);                        /* NULL allowed */
	/* An event can be recorded again. A wait that was queued before that is for the record before. */
	void (*event_record)(struct wlb_device *, struct wlb_event *, struct wlb_queue *);
	/* What is queued from now on waits for the event's last record; the host does not. An event that was never
	 * recorded is reached. */
	void (*queue_wait)(struct wlb_device *, struct wlb_queue *, struct wlb_event *);
	/* The host waits until the event's last record is reached. Returns as synchronize. */
	int (*event_wait)(struct wlb_device *, struct wlb_event *, struct wlb_error *);
	/* 1 where it is reached (or the device has failed, which synchronize reports), else 0. Any thread may call it.
	 */
	int (*event_done)(struct wlb_device *, struct wlb_event *);
	/* Seconds between two timed events that are reached. */
	double (*event_elapsed_s)(struct wlb_device *, struct wlb_event *from, struct wlb_event *to);

	/* Seconds that the device has computed for the calling thread since an arbitrary moment; to be read when the
	 * device is synchronized. On the CPU it is processor time, so that a rank that shares its core with others is
	 * not measured as a slow one; on a GPU it is elapsed time, which for ranks that share one includes the kernels
	 * of the others. */
	double (*busy_s)(struct wlb_device *);

	/* -- linear layers of n rows -- */
	/* y[n, out] = x[n, in] W^T + residual. residual has y's stride, and may be y; NULL: none. */
	void (*linear)(struct wlb_device *, void *y, int64_t y_stride, const void *x, int64_t x_stride,
	               const struct wlb_weight *, const void *residual, int64_t n);
	/* d_x[n, in] = d_y[n, out] W; added to d_x where `add` is 1, which is 0 or 1 */
	void (*linear_d_x)(struct wlb_device *, void *d_x, int64_t d_x_stride, const void *d_y, int64_t d_y_stride,
	                   const struct wlb_weight *, int add, int64_t n);
	/* d_w[out, in] (gradients) = d_y[n, out]^T x[n, in]; added to d_w where `add` is 1, which is 0 or 1. With no
	 * rows and `add` 0, d_w is undefined. */
	void (*linear_d_w)(struct wlb_device *, void *d_w, const void *d_y, int64_t d_y_stride, const void *x,
	                   int64_t x_stride, int add, int64_t n, int64_t out, int64_t in);

	/* -- embedding -- `table` holds the rows of the ids [first, first + count): the whole vocabulary, or a
	 * tensor-parallel slice. out[tokens, width] = table[ids - first]; a row whose id belongs to another rank
	 * becomes 0, and backward skips it. d_table is of type gradients. */
	void (*embedding_forward)(struct wlb_device *, void *out, const void *table, const int32_t *ids, int64_t tokens,
	                          int64_t width, int64_t first, int64_t count);
	void (*embedding_backward)(struct wlb_device *, void *d_table, const void *d_out, const int32_t *ids,
	                           int64_t tokens, int64_t width, int64_t first, int64_t count);

	/* -- RMSNorm (Zhang & Sennrich 2019) -- sum = x + residual, out = sum / rms(sum) (weight + addend);
	 * rstd[tokens] (master) is kept for backward. The norm is that of the sum as it is stored, so that the norm of
	 * the stored sum has the same bits. residual NULL: the sum is x, and `sum` is neither read nor written. sum may
	 * be x or residual. */
	void (*rmsnorm_forward)(struct wlb_device *, void *out, void *rstd, void *sum, const void *x,
	                        const void *residual, const void *weight, double addend, int64_t tokens, int64_t width,
	                        double epsilon);
	/* `x` is the sum that the forward pass stored. Adds to d_x, which already carries the residual's gradient, and
	 * to d_weight (gradients). */
	void (*rmsnorm_backward)(struct wlb_device *, void *d_x, void *d_weight, const void *d_out, const void *x,
	                         const void *weight, double addend, const void *rstd, int64_t tokens, int64_t width);

	/* -- biases, of `width` columns of rows that are `stride` apart -- y[n, width] += bias, and the gradient of the
	 * bias (gradients) += the sum of the rows of d_y */
	void (*add_bias)(struct wlb_device *, void *y, int64_t stride, const void *bias, int64_t n, int64_t width);
	void (*bias_backward)(struct wlb_device *, void *d_bias, const void *d_y, int64_t stride, int64_t n,
	                      int64_t width);

	/* -- RMSNorm of groups of columns, queries and keys: of each row `groups` times `width` columns, which share
	 * weight[width] + weight_addend, called weight here. Its two passes begin with sums, to which other ranks can
	 * add theirs where they hold the rest of a row -- sums[rows, groups] (master) = of each group the sum of x d,
	 * or, weight not NULL, of x d weight: d = x before the forward pass, the gradient of the result before the
	 * backward pass. */
	void (*group_norm_sums)(struct wlb_device *, void *sums, const void *x, int64_t x_stride, const void *d,
	                        int64_t d_stride, const void *weight, const struct wlb_norm_groups *);
	/* out = x / rms(x) weight, from the sums of the squares */
	void (*group_norm_forward)(struct wlb_device *, void *out, int64_t out_stride, const void *x, int64_t x_stride,
	                           const void *squares, const void *weight, const struct wlb_norm_groups *);
	/* d, the gradient of the result, becomes that of x; adds to d_weight (gradients) */
	void (*group_norm_backward)(struct wlb_device *, void *d, int64_t d_stride, void *d_weight, const void *x,
	                            int64_t x_stride, const void *squares, const void *products, const void *weight,
	                            const struct wlb_norm_groups *);

	/* -- RoPE (Su et al. 2021), Hugging Face's half-split form -- angles[tokens, 2 pairs] (master): of each row the
	 * cosines of its position's angles, then the sines, both times `scale`. frequencies[pairs] are double, in
	 * radians for each position. The angles are the same for all layers and heads. */
	void (*rope_angles)(struct wlb_device *, void *angles, const int32_t *positions, int64_t tokens,
	                    const double *frequencies, int pairs, double scale);
	/* In place on the first heads * head_dim columns of x[tokens, stride]: queries and keys that lie side by side
	 * are rotated by one call. Of each head the first 2 pairs elements are rotated, i with i + pairs; the others
	 * stay. direction +1 forward, -1 backward, the transposed rotation */
	void (*rope)(struct wlb_device *, void *x, int64_t stride, const void *angles, int64_t tokens, int heads,
	             int head_dim, int pairs, int direction);

	/* -- attention, causal inside each segment and within the window, softmax scale 1/sqrt(head_dim) --
	 * attention_tile_rows returns the rows of the tiles that the two operations need; 0 where they need none; -1
	 * with the reason where the device lacks this head_dim. Any thread may call it. */
	int (*attention_tile_rows)(const struct wlb_device *, int head_dim, struct wlb_error *);
	/*
	 * q, out: q_tokens rows of heads * head_dim; k, v: k_tokens rows of kv_heads * head_dim; lse [q_tokens, heads]
	 * (master; log-sum-exp of the scaled scores). Rows that no segment covers are unchanged. */
	void (*attention_forward)(struct wlb_device *, void *out, void *lse, const void *q, const void *k,
	                          const void *v, const struct wlb_segments *, const struct wlb_attention_shape *);
	/* d_q is overwritten in the rows of the segments' queries, d_k and d_v in the rows of their keys, also where
	 * several segments share keys; other rows are unchanged */
	void (*attention_backward)(struct wlb_device *, void *d_q, void *d_k, void *d_v, const void *d_out,
	                           const void *q, const void *k, const void *v, const void *out, const void *lse,
	                           const struct wlb_segments *, const struct wlb_attention_shape *);

	/* -- SwiGLU (Shazeer 2020) -- gate_up[n, 2 width]: gate, then up; out[n, width] = silu(gate) * up */
	void (*swiglu_forward)(struct wlb_device *, void *out, const void *gate_up, int64_t n, int64_t width);
	/* gate_up is replaced by its gradient, and d_out, the gradient of out, by out: the gradient of the matrix that
	 * multiplies out needs it, and so it need not be kept since the forward pass */
	void (*swiglu_backward)(struct wlb_device *, void *gate_up, void *d_out, int64_t n, int64_t width);

	/* -- GeGLU (Shazeer 2020) -- as SwiGLU, with GELU in the place of SiLU, in its approximation by tanh: gelu(g) =
	 * g sigmoid(2 sqrt(2 / pi) (g + 0.044715 g^3)) */
	void (*geglu_forward)(struct wlb_device *, void *out, const void *gate_up, int64_t n, int64_t width);
	void (*geglu_backward)(struct wlb_device *, void *gate_up, void *d_out, int64_t n, int64_t width);

	/* -- loss -- of logits[tokens, count], the columns of the ids [first, first + count); targets int32, < 0: the
	 * token has no target. It has two parts, so that tensor-parallel ranks that each hold a slice of the vocabulary
	 * can combine their statistics between the two (vocabulary-parallel cross-entropy, Shoeybi et al. 2019):
	 * statistics[tokens, 3] (master) = the row's largest logit, the sum of exp(logit - largest), and the logit of
	 * the target, 0 where the target belongs to another rank; all 0 in a row without a target. */
	void (*cross_entropy_statistics)(struct wlb_device *, void *statistics, const void *logits,
	                                 const int32_t *targets, int64_t tokens, int64_t first, int64_t count);
	/* statistics[parts, tokens, 3]: the statistics of every rank in rank order; parts is 1 for one rank. logits are
	 * replaced by d_logits = (softmax - onehot) * scale, rows without a target by 0. Adds the cross-entropy (not
	 * scaled) of one row after the other to *loss_sum (double, device; NULL: not wanted), so that the sum does not
	 * depend on how rows are divided among calls. softcap: logits are of the operation softcap with this cap, and
	 * d_logits the gradient of what it was given; 0: they are not. */
	void (*cross_entropy_gradient)(struct wlb_device *, double *loss_sum, void *logits, const void *statistics,
	                               int parts, const int32_t *targets, int64_t tokens, int64_t first, int64_t count,
	                               double scale, double softcap);

	/* -- rows -- row i of out = row rows[i] of x, `width` columns; a negative rows[i] gives 0; rows NULL: row i.
	 * out and x do not overlap, but may be columns of one matrix. */
	void (*gather_rows)(struct wlb_device *, void *out, int64_t out_stride, const void *x, int64_t x_stride,
	                    const int32_t *rows, int64_t count, int64_t width);

	/* -- vectors of n reals -- */
	void (*add)(struct wlb_device *, void *y, const void *x, int64_t n);   /* y += x */
	void (*scale)(struct wlb_device *, void *x, double factor, int64_t n); /* x *= factor */
	void (*softcap)(struct wlb_device *, void *x, double cap, int64_t n);  /* x = cap tanh(x / cap); cap above 0 */
	void (*add_gradients)(struct wlb_device *, void *y, const void *x, int64_t n); /* y += x, of gradients */
	/* *sum (device) += x.x, of gradients */
	void (*sum_squares)(struct wlb_device *, double *sum, const void *x, int64_t n);

	/* -- optimizer -- *factor (double, device) = what gradients are multiplied by: 0 where *loss_sum or
	 * *sum_squares is not finite, or sqrt(*sum_squares) is above most_norm (INFINITY: no limit), else 1, or clip /
	 * (sqrt(*sum_squares) + 1e-6) where that is less and clip is not 0 (Megatron-LM's coefficient, with its guard
	 * against a norm of 0). */
	void (*clip_factor)(struct wlb_device *, double *factor, const double *sum_squares, const double *loss_sum,
	                    double clip, double most_norm);
	/* Updates n masters. m, v (master) and param (compute) have n elements; grad (gradients) is multiplied by
	 * *factor (double, device) first and is read only. Where *factor is 0 nothing changes. Where the types are
	 * equal, `master` has the masters, which param becomes, and may be param. Where compute is bfloat16 and master
	 * float32, the masters are in two halves (kernels/bfloat16.h): their rounded weights in param, and their lower
	 * 16 bits in `master`. No other arrays overlap. Each begins at a multiple of 16 bytes. */
	void (*adamw)(struct wlb_device *, void *param, void *master, const void *grad, void *m, void *v, int64_t n,
	              const struct wlb_adamw *, const double *factor);
};

/* An allocation for which there was no memory. */
struct wlb_no_memory {
	size_t asked_bytes; /* 0: all allocations succeeded so far */
	size_t free_bytes;  /* of the device's memory, whichever process uses the rest */
	size_t total_bytes; /* 0: the device does not report it */
};

struct wlb_device {
	const struct wlb_ops *ops; /* an operation that this device lacks is NULL */
	const char *name;          /* "cpu", "cuda:0" */
	char hardware[24];         /* the GPU's address on the node's bus; "" on the CPU */
	enum wlb_dtype compute;
	enum wlb_dtype master;
	/* The type in which gradients of weights are summed: `master` by default. The caller may set it to `compute` on
	 * a CUDA device before the first operation: this halves their memory, and each addition is rounded. */
	enum wlb_dtype gradients;
	int host_threads;        /* that a rank may use for work of its own on the host; 0: one */
	int host_memory;         /* 1: its memory is host memory (the CPU), so a transport need not stage; else 0 */
	void *state;             /* private to the device */
	int64_t allocated_bytes; /* by alloc and for the device's own use, and not released */
	struct wlb_no_memory no_memory; /* of the last one that failed for lack of device memory */
	int64_t host_waits; /* calls so far of synchronize, event_wait and to_host, for which the host waits */
};

/* Opens a device; returns NULL with the reason on failure. `threads` 0: OpenMP's default number. */
struct wlb_device *wlb_device_open_cpu(enum wlb_dtype dtype, int threads, struct wlb_error *error);
/* Returns how many GPUs this process sees; 0 where there is none, also in a CPU build. */
int wlb_cuda_device_count(void);
/* Returns 1 where this program can use no GPU, whatever GPUs there are: the build has no CUDA, or the driver that is
 * loaded is older than the program's CUDA needs. A node whose driver is not loaded, or lacks its library
 * (libcuda.so.1), is none of these. */
int wlb_cuda_is_unusable(void);

/* A GPU, as it and its driver describe it. */
struct wlb_gpu {
	char model[49];   /* "NVIDIA H100 80GB HBM3"; what is longer is cut off */
	char address[25]; /* on the node's bus */
	char driver[19];  /* "580.159.04"; "" where the driver does not report it */
	int64_t memory_bytes;
	int driver_cuda; /* the newest CUDA that the driver runs: 13000 is 13.0 */
	int cuda;        /* that this program was built with */
};
/* Describes GPU `index`, of 0 to wlb_cuda_device_count() - 1. Returns -1 with the reason where there is none. */
int wlb_cuda_describe(int index, struct wlb_gpu *gpu, struct wlb_error *error);
/* compute: float32 or bfloat16; master: float32. In a CPU build this fails with the message that the build has no CUDA.
 */
struct wlb_device *wlb_device_open_cuda(int index, enum wlb_dtype compute, enum wlb_dtype master,
                                        struct wlb_error *error);
/* Returns 0, or -1 with the reason where this program has no kernels for GPU `index`, which becomes that of this
 * thread; 0 also where CUDA cannot use the GPU. A node whose GPU has none is not at fault: the program was built for
 * other GPUs. */
int wlb_cuda_check_kernels(int index, struct wlb_error *error);
/* Returns 1 where the newest error of a CUDA device in this thread, also of opening it, is that GPU `index` has no free
 * memory, or that another process has it for itself alone. For a program that needs little memory both say that other
 * processes use the GPU. */
int wlb_cuda_is_in_use(int index);
/* Returns how much memory of the GPU is free whose device this thread has opened last; -1 where CUDA does not report
 * it. */
int64_t wlb_cuda_free_bytes(void);
void wlb_device_close(struct wlb_device *device); /* NULL allowed */

#ifdef __cplusplus
}
#endif

#endif
