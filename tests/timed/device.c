#include "tests/timed/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/timed/clock.h"
#include "tests/timed/queues.h"

/* Kinds of operations whose times are changed independently of each other. */
enum kind {
	GEMM_OUTPUT, /* the three products of a linear layer */
	GEMM_INPUT_GRADIENT,
	GEMM_WEIGHT_GRADIENT,
	ATTENTION_FORWARD,
	ATTENTION_BACKWARD,
	EMBEDDING,
	NORM,
	ROPE,
	SWIGLU,
	CROSS_ENTROPY,
	VECTOR,
	ADAMW,
	MEMORY, /* copies, and memory that is set to 0 */
	KINDS,
};

struct timed {
	struct wlb_ops ops;            /* first: device->ops points to it; the CPU device's, but for what takes time */
	struct wlb_timed_clock *clock; /* follows this struct in memory */
	struct wlb_timed_settings settings;
	double element_bytes;
	const struct wlb_ops *cpu;
};

static const struct timed *timed_of(const struct wlb_device *device)
{
	return (const struct timed *)device->ops;
}

struct wlb_timed_clock *wlb_timed_clock_of(const struct wlb_device *device)
{
	return timed_of(device)->clock;
}

const struct wlb_timed_settings *wlb_timed_settings_of(const struct wlb_device *device)
{
	return &timed_of(device)->settings;
}

double wlb_timed_scale_of(const struct wlb_device *device)
{
	const struct timed *timed = timed_of(device);
	return timed->clock->steps < timed->settings.skipped_steps ? 0.0 : timed->settings.scale;
}

/* Returns a random number from 0 to 1 by SplitMix64 (Steele et al., 2014): the same on every machine. */
static double random_unit(uint64_t state)
{
	uint64_t z = state + UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Returns the factor of a kind of operations in the step that runs. */
static double factor_of(const struct wlb_device *device, enum kind kind)
{
	const struct timed *timed = timed_of(device);
	const struct wlb_timed_settings *settings = &timed->settings;
	int64_t last = settings->seed_count - 1, step = timed->clock->steps < last ? timed->clock->steps : last;
	uint64_t seed = last >= 0 ? settings->seeds[step] : 0;
	double scale = wlb_timed_scale_of(device) * timed->clock->factor;
	return scale * (seed > 0 ? 0.8 + 0.4 * random_unit(seed * KINDS + kind) : 1.0);
}

static double read_factor(const char *path)
{
	double factor = 1.0;
	FILE *file = path != NULL ? fopen(path, "re") : NULL;
	if (file == NULL)
		return 1.0;
	if (fscanf(file, "%lf", &factor) != 1 || !(factor > 0.0))
		factor = 1.0;
	fclose(file);
	return factor;
}

static void add_time(struct wlb_device *device, enum kind kind, double seconds)
{
	const struct timed *timed = timed_of(device);
	wlb_timed_clock_add(timed->clock, seconds * factor_of(device, kind));
}

static double seconds_of(const struct wlb_device *device, enum wlb_op op, double elements)
{
	return wlb_machine_op_s(&timed_of(device)->settings.machine, op, elements);
}

static void add_op_time(struct wlb_device *device, enum kind kind, enum wlb_op op, double elements)
{
	add_time(device, kind, seconds_of(device, op, elements));
}

/* Where messages are queued they carry no data, and nothing writes to the memory. */
static void zero(struct wlb_device *device, void *memory, size_t bytes)
{
	if (!timed_of(device)->clock->is_queued)
		timed_of(device)->cpu->zero(device, memory, bytes);
	if (bytes > 0)
		add_op_time(device, MEMORY, WLB_OP_ZERO, (double)bytes / timed_of(device)->element_bytes);
}

static void copy(struct wlb_device *device, void *to, const void *from, size_t bytes)
{
	timed_of(device)->cpu->copy(device, to, from, bytes);
	if (bytes > 0)
		add_op_time(device, MEMORY, WLB_OP_COPY, (double)bytes / timed_of(device)->element_bytes);
}

static void add_product_time(struct wlb_device *device, enum kind kind, int64_t rows, int64_t depth, int64_t columns)
{
	add_time(device, kind,
	         wlb_machine_gemm_s(&timed_of(device)->settings.machine, (double)rows, (double)depth, (double)columns));
}

/* The residual is added while the product is in the cache: it takes no time. */
static void linear(struct wlb_device *device, void *y, int64_t y_stride, const void *x, int64_t x_stride,
                   const struct wlb_weight *w, const void *residual, int64_t n)
{
	(void)y, (void)y_stride, (void)x, (void)x_stride, (void)residual;
	add_product_time(device, GEMM_OUTPUT, n, w->in, w->out);
}

static void linear_d_x(struct wlb_device *device, void *d_x, int64_t d_x_stride, const void *d_y, int64_t d_y_stride,
                       const struct wlb_weight *w, int add, int64_t n)
{
	(void)d_x, (void)d_x_stride, (void)d_y, (void)d_y_stride, (void)add;
	add_product_time(device, GEMM_INPUT_GRADIENT, n, w->out, w->in);
}

static void linear_d_w(struct wlb_device *device, void *d_w, const void *d_y, int64_t d_y_stride, const void *x,
                       int64_t x_stride, int add, int64_t n, int64_t out, int64_t in)
{
	(void)d_w, (void)d_y, (void)d_y_stride, (void)x, (void)x_stride, (void)add;
	add_product_time(device, GEMM_WEIGHT_GRADIENT, out, n, in);
}

static void add_attention_time(struct wlb_device *device, enum kind kind, const struct wlb_segments *segments,
                               const struct wlb_attention_shape *shape)
{
	double seconds = 0.0;
	for (int i = 0; i < segments->count; i++) {
		const struct wlb_segment *s = &segments->segments[i];
		double keys = (double)s->q_offset + (double)s->q_count;
		seconds += wlb_machine_attention_s(&timed_of(device)->settings.machine, shape->heads, shape->head_dim,
		                                   shape->window, (double)s->q_count, keys, kind == ATTENTION_BACKWARD);
	}
	add_time(device, kind, seconds);
}

static void attention_forward(struct wlb_device *device, void *out, void *lse, const void *q, const void *k,
                              const void *v, const struct wlb_segments *segments,
                              const struct wlb_attention_shape *shape)
{
	(void)out, (void)lse, (void)q, (void)k, (void)v;
	add_attention_time(device, ATTENTION_FORWARD, segments, shape);
}

static void attention_backward(struct wlb_device *device, void *d_q, void *d_k, void *d_v, const void *d_out,
                               const void *q, const void *k, const void *v, const void *out, const void *lse,
                               const struct wlb_segments *segments, const struct wlb_attention_shape *shape)
{
	(void)d_q, (void)d_k, (void)d_v, (void)d_out, (void)q, (void)k, (void)v, (void)out, (void)lse;
	add_attention_time(device, ATTENTION_BACKWARD, segments, shape);
}

static void embedding_forward(struct wlb_device *device, void *out, const void *table, const int32_t *ids,
                              int64_t tokens, int64_t width, int64_t first, int64_t count)
{
	(void)out, (void)table, (void)ids, (void)first, (void)count;
	add_op_time(device, EMBEDDING, WLB_OP_EMBEDDING_FORWARD, (double)tokens * (double)width);
}

static void embedding_backward(struct wlb_device *device, void *d_table, const void *d_out, const int32_t *ids,
                               int64_t tokens, int64_t width, int64_t first, int64_t count)
{
	(void)d_table, (void)d_out, (void)ids, (void)first, (void)count;
	add_op_time(device, EMBEDDING, WLB_OP_EMBEDDING_BACKWARD, (double)tokens * (double)width);
}

/* With a residual it takes as long as without, and as a sum. */
static void rmsnorm_forward(struct wlb_device *device, void *out, void *rstd, void *sum, const void *x,
                            const void *residual, const void *weight, double addend, int64_t tokens, int64_t width,
                            double epsilon)
{
	(void)out, (void)rstd, (void)sum, (void)x, (void)weight, (void)addend, (void)epsilon;
	add_op_time(device, NORM, WLB_OP_RMSNORM_FORWARD, (double)tokens * (double)width);
	if (residual != NULL)
		add_op_time(device, VECTOR, WLB_OP_ADD, (double)tokens * (double)width);
}

static void rmsnorm_backward(struct wlb_device *device, void *d_x, void *d_weight, const void *d_out, const void *x,
                             const void *weight, double addend, const void *rstd, int64_t tokens, int64_t width)
{
	(void)d_x, (void)d_weight, (void)d_out, (void)x, (void)weight, (void)addend, (void)rstd;
	add_op_time(device, NORM, WLB_OP_RMSNORM_BACKWARD, (double)tokens * (double)width);
}

static void add_bias(struct wlb_device *device, void *y, int64_t stride, const void *bias, int64_t n, int64_t width)
{
	(void)y, (void)stride, (void)bias;
	add_op_time(device, VECTOR, WLB_OP_ADD, (double)n * (double)width);
}

static void bias_backward(struct wlb_device *device, void *d_bias, const void *d_y, int64_t stride, int64_t n,
                          int64_t width)
{
	(void)d_bias, (void)d_y, (void)stride;
	add_op_time(device, VECTOR, WLB_OP_SUM_SQUARES, (double)n * (double)width);
}

static double elements_of(const struct wlb_norm_groups *g)
{
	return (double)g->rows * g->groups * (double)g->width;
}

/* Its time is in that of the pass after it. */
static void group_norm_sums(struct wlb_device *device, void *sums, const void *x, int64_t x_stride, const void *d,
                            int64_t d_stride, const void *weight, const struct wlb_norm_groups *g)
{
	(void)device, (void)sums, (void)x, (void)x_stride, (void)d, (void)d_stride, (void)weight, (void)g;
}

static void group_norm_forward(struct wlb_device *device, void *out, int64_t out_stride, const void *x,
                               int64_t x_stride, const void *squares, const void *weight,
                               const struct wlb_norm_groups *g)
{
	(void)out, (void)out_stride, (void)x, (void)x_stride, (void)squares, (void)weight;
	add_op_time(device, NORM, WLB_OP_RMSNORM_FORWARD, elements_of(g));
}

static void group_norm_backward(struct wlb_device *device, void *d, int64_t d_stride, void *d_weight, const void *x,
                                int64_t x_stride, const void *squares, const void *products, const void *weight,
                                const struct wlb_norm_groups *g)
{
	(void)d, (void)d_stride, (void)d_weight, (void)x, (void)x_stride, (void)squares, (void)products, (void)weight;
	add_op_time(device, NORM, WLB_OP_RMSNORM_BACKWARD, elements_of(g));
}

static void rope_angles(struct wlb_device *device, void *angles, const int32_t *positions, int64_t tokens,
                        const double *frequencies, int pairs, double scale)
{
	(void)angles, (void)positions, (void)frequencies, (void)scale;
	add_op_time(device, ROPE, WLB_OP_ROPE_ANGLES, (double)tokens * pairs);
}

static void rope(struct wlb_device *device, void *x, int64_t stride, const void *angles, int64_t tokens, int heads,
                 int head_dim, int pairs, int direction)
{
	(void)x, (void)stride, (void)angles, (void)head_dim, (void)direction;
	add_op_time(device, ROPE, WLB_OP_ROPE, 2.0 * (double)tokens * heads * pairs);
}

static void swiglu_forward(struct wlb_device *device, void *out, const void *gate_up, int64_t n, int64_t width)
{
	(void)out, (void)gate_up;
	add_op_time(device, SWIGLU, WLB_OP_SWIGLU_FORWARD, (double)n * (double)width);
}

static void swiglu_backward(struct wlb_device *device, void *gate_up, void *d_out, int64_t n, int64_t width)
{
	(void)gate_up, (void)d_out;
	add_op_time(device, SWIGLU, WLB_OP_SWIGLU_BACKWARD, (double)n * (double)width);
}

static void cross_entropy_statistics(struct wlb_device *device, void *statistics, const void *logits,
                                     const int32_t *targets, int64_t tokens, int64_t first, int64_t count)
{
	(void)statistics, (void)logits, (void)targets, (void)first;
	add_op_time(device, CROSS_ENTROPY, WLB_OP_CROSS_ENTROPY_STATISTICS, (double)tokens * (double)count);
}

static void cross_entropy_gradient(struct wlb_device *device, double *loss_sum, void *logits, const void *statistics,
                                   int parts, const int32_t *targets, int64_t tokens, int64_t first, int64_t count,
                                   double scale, double softcap)
{
	(void)loss_sum, (void)logits, (void)statistics, (void)parts, (void)targets, (void)first, (void)scale;
	(void)softcap;
	add_op_time(device, CROSS_ENTROPY, WLB_OP_CROSS_ENTROPY_GRADIENT, (double)tokens * (double)count);
}

static void gather_rows(struct wlb_device *device, void *out, int64_t out_stride, const void *x, int64_t x_stride,
                        const int32_t *rows, int64_t count, int64_t width)
{
	(void)out, (void)out_stride, (void)x, (void)x_stride, (void)rows;
	add_op_time(device, VECTOR, WLB_OP_GATHER_ROWS, (double)count * (double)width);
}

static void add(struct wlb_device *device, void *y, const void *x, int64_t n)
{
	(void)y, (void)x;
	add_op_time(device, VECTOR, WLB_OP_ADD, (double)n);
}

static void scale(struct wlb_device *device, void *x, double factor, int64_t n)
{
	(void)x, (void)factor;
	add_op_time(device, VECTOR, WLB_OP_ADD, (double)n);
}

static void softcap(struct wlb_device *device, void *x, double cap, int64_t n)
{
	(void)x, (void)cap;
	add_op_time(device, VECTOR, WLB_OP_ADD, (double)n);
}

static void sum_squares(struct wlb_device *device, double *sum, const void *x, int64_t n)
{
	(void)sum, (void)x;
	add_op_time(device, VECTOR, WLB_OP_SUM_SQUARES, (double)n);
}

/* Reads weight, gradient and both moments; writes all but the gradient. */
static void adamw(struct wlb_device *device, void *param, void *master, const void *grad, void *m, void *v, int64_t n,
                  const struct wlb_adamw *settings, const double *factor)
{
	(void)param, (void)master, (void)grad, (void)m, (void)v, (void)factor;
	struct wlb_timed_clock *clock = timed_of(device)->clock;
	if (clock->steps != settings->step)
		clock->factor = read_factor(timed_of(device)->settings.factor_file);
	clock->steps = settings->step - 1; /* a step updates several parts */
	double takes_s = seconds_of(device, WLB_OP_ADAMW, (double)n);
	if (clock->is_queued && settings->queue != NULL)
		wlb_timed_queue_add(settings->queue, takes_s * factor_of(device, ADAMW));
	else
		add_time(device, ADAMW, takes_s);
	clock->steps = settings->step;
	if (clock->steps == timed_of(device)->settings.skipped_steps)
		clock->free_s = fmax(clock->free_s, timed_of(device)->settings.start_s);
}

/* Before the memory of each allocation. */
union head {
	size_t bytes;
	char space[64];
};

/* Pages that nothing writes take no memory: nothing is computed, so that many ranks of large models fit. */
static void *alloc(struct wlb_device *device, size_t bytes, struct wlb_error *error)
{
	union head *head = mmap(NULL, sizeof(*head) + bytes, PROT_READ | PROT_WRITE,
	                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (head == MAP_FAILED) {
		wlb_fail(error, "cannot allocate %zu bytes on the timed device: out of memory", bytes);
		return NULL;
	}
	head->bytes = bytes;
	__atomic_add_fetch(&device->allocated_bytes, (int64_t)bytes, __ATOMIC_RELAXED);
	return head + 1;
}

static void release(struct wlb_device *device, void *memory)
{
	union head *head = memory;
	if (memory == NULL)
		return;
	__atomic_sub_fetch(&device->allocated_bytes, (int64_t)head[-1].bytes, __ATOMIC_RELAXED);
	munmap(head - 1, sizeof(*head) + head[-1].bytes);
}

static int synchronize(struct wlb_device *device, struct wlb_error *error)
{
	wlb_timed_clock_wait(timed_of(device)->clock);
	return timed_of(device)->cpu->synchronize(device, error);
}

static void to_host(struct wlb_device *device, void *to_host, const void *from, size_t bytes)
{
	wlb_timed_clock_wait(timed_of(device)->clock);
	timed_of(device)->cpu->to_host(device, to_host, from, bytes);
}

static int event_wait(struct wlb_device *device, struct wlb_event *event, struct wlb_error *error)
{
	wlb_timed_clock_wait(timed_of(device)->clock);
	return timed_of(device)->cpu->event_wait(device, event, error);
}

static double busy_s(struct wlb_device *device)
{
	return timed_of(device)->clock->busy_s;
}

static void close_timed(struct wlb_device *device)
{
	struct timed *timed = (struct timed *)(uintptr_t)device->ops;
	timed->cpu->close(device);
	free(timed);
}

static void replace_operations(struct wlb_ops *ops)
{
	ops->close = close_timed;
	ops->alloc = alloc;
	ops->release = release;
	ops->synchronize = synchronize;
	ops->event_wait = event_wait;
	ops->busy_s = busy_s;
	ops->zero = zero;
	ops->copy = copy;
	ops->linear = linear;
	ops->linear_d_x = linear_d_x;
	ops->linear_d_w = linear_d_w;
	ops->embedding_forward = embedding_forward;
	ops->embedding_backward = embedding_backward;
	ops->rmsnorm_forward = rmsnorm_forward;
	ops->rmsnorm_backward = rmsnorm_backward;
	ops->add_bias = add_bias;
	ops->bias_backward = bias_backward;
	ops->group_norm_sums = group_norm_sums;
	ops->group_norm_forward = group_norm_forward;
	ops->group_norm_backward = group_norm_backward;
	ops->rope_angles = rope_angles;
	ops->rope = rope;
	ops->attention_forward = attention_forward;
	ops->attention_backward = attention_backward;
	ops->swiglu_forward = swiglu_forward;
	ops->swiglu_backward = swiglu_backward;
	ops->geglu_forward = swiglu_forward;
	ops->geglu_backward = swiglu_backward;
	ops->cross_entropy_statistics = cross_entropy_statistics;
	ops->cross_entropy_gradient = cross_entropy_gradient;
	ops->gather_rows = gather_rows;
	ops->add = add;
	ops->scale = scale;
	ops->softcap = softcap;
	ops->add_gradients = add;
	ops->sum_squares = sum_squares;
	ops->adamw = adamw;
}

int wlb_timed_device_replace(struct wlb_device *cpu, const struct wlb_timed_settings *settings, struct wlb_error *error)
{
	struct timed *timed = calloc(1, sizeof(*timed) + sizeof(*timed->clock));
	if (timed == NULL)
		return wlb_fail(error, "cannot open the timed device: out of memory");
	timed->clock = (struct wlb_timed_clock *)(timed + 1);
	timed->settings = *settings;
	timed->clock->free_s = settings->skipped_steps > 0 ? 0.0 : settings->start_s;
	timed->clock->factor = read_factor(settings->factor_file);
	timed->clock->is_queued = !settings->machine.blocking_messages;
	timed->element_bytes = (double)wlb_dtype_bytes(cpu->compute);
	timed->cpu = cpu->ops;
	timed->ops = *cpu->ops;
	replace_operations(&timed->ops);
	if (timed->clock->is_queued) {
		wlb_timed_queues_replace(&timed->ops);
		timed->ops.to_host = to_host;
	}
	cpu->ops = &timed->ops;
	cpu->name = "timed";
	return 0;
}
