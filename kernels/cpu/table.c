/* Defines the table of operations of one element type and instruction set. */
#include "kernels/cpu/operations.h"

extern const struct wlb_ops VARIANT(ops);

const struct wlb_ops VARIANT(ops) = {
	.close = wlb_cpu_close,
	.alloc = wlb_cpu_alloc,
	.release = wlb_cpu_release,
	.to_device = wlb_cpu_copy,
	.to_host = wlb_cpu_copy,
	.copy = wlb_cpu_copy,
	.zero = wlb_cpu_zero,
	.synchronize = wlb_cpu_synchronize,
	.busy_s = wlb_cpu_busy_s,
	.linear = VARIANT(linear),
	.linear_d_x = VARIANT(linear_d_x),
	.linear_d_w = VARIANT(linear_d_w),
	.embedding_forward = VARIANT(embedding_forward),
	.embedding_backward = VARIANT(embedding_backward),
	.rmsnorm_forward = VARIANT(rmsnorm_forward),
	.rmsnorm_backward = VARIANT(rmsnorm_backward),
	.rope_angles = VARIANT(rope_angles),
	.rope = VARIANT(rope),
	.attention_forward = VARIANT(attention_forward),
	.attention_backward = VARIANT(attention_backward),
	.swiglu_forward = VARIANT(swiglu_forward),
	.swiglu_backward = VARIANT(swiglu_backward),
	.cross_entropy_statistics = VARIANT(cross_entropy_statistics),
	.cross_entropy_gradient = VARIANT(cross_entropy_gradient),
	.gather_rows = VARIANT(gather_rows),
	.add = VARIANT(add),
	.scale = VARIANT(scale),
	.sum_squares = VARIANT(sum_squares),
	.adamw = VARIANT(adamw),
};
