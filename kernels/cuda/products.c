/* The linear layers of kernels/ops.h: the products of linear.h with the element types of the device. */
#include "kernels/cuda/linear.h"

static struct wlb_cuda_matrix matrix(const void *values, enum wlb_dtype type, int64_t row_stride)
{
	return (struct wlb_cuda_matrix){(void *)values, type, row_stride};
}

static struct wlb_cuda_weight weight(const struct wlb_device *device, const struct wlb_weight *w)
{
	return (struct wlb_cuda_weight){w->values, device->compute, w->in};
}

void wlb_cuda_linear_op(struct wlb_device *device, void *y, int64_t y_stride, const void *x, int64_t x_stride,
                        const struct wlb_weight *w, const void *residual, int64_t n)
{
	const struct wlb_cuda_matrix results = matrix(y, device->compute, y_stride);
	const struct wlb_cuda_matrix rows = matrix(x, device->compute, x_stride);
	const struct wlb_cuda_matrix added = matrix(residual, device->compute, y_stride);
	const struct wlb_cuda_weight values = weight(device, w);
	const struct wlb_cuda_linear_size size = {n, w->in, w->out};
	wlb_cuda_linear_forward(wlb_cuda_of(device)->linear, &results, &rows, &values, residual != NULL ? &added : NULL,
	                        &size);
}

void wlb_cuda_linear_d_x_op(struct wlb_device *device, void *d_x, int64_t d_x_stride, const void *d_y,
                            int64_t d_y_stride, const struct wlb_weight *w, int add, int64_t n)
{
	const struct wlb_cuda_matrix results = matrix(d_x, device->compute, d_x_stride);
	const struct wlb_cuda_matrix rows = matrix(d_y, device->compute, d_y_stride);
	const struct wlb_cuda_weight values = weight(device, w);
	const struct wlb_cuda_linear_size size = {n, w->in, w->out};
	wlb_cuda_linear_d_x(wlb_cuda_of(device)->linear, &results, &rows, &values, add, &size);
}

void wlb_cuda_linear_d_w_op(struct wlb_device *device, void *d_w, const void *d_y, int64_t d_y_stride, const void *x,
                            int64_t x_stride, int add, int64_t n, int64_t out, int64_t in)
{
	const struct wlb_cuda_matrix results = matrix(d_w, device->gradients, in);
	const struct wlb_cuda_matrix gradients = matrix(d_y, device->compute, d_y_stride);
	const struct wlb_cuda_matrix rows = matrix(x, device->compute, x_stride);
	const struct wlb_cuda_linear_size size = {n, in, out};
	wlb_cuda_linear_d_w(wlb_cuda_of(device)->linear, &results, &gradients, &rows, add, &size);
}
