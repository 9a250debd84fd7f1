#include "worker/model/linear.h"

void wlb_linear(const struct wlb_parameters *p, void *out, const void *x, int tensor, int64_t rows, double beta)
{
	struct wlb_device *device = p->device;
	int64_t out_width = p->tensors[tensor].block.rows, in_width = p->tensors[tensor].block.cols;
	device->ops->gemm(device, 0, 1, rows, out_width, in_width, 1.0, x, in_width, wlb_weight(p, tensor), in_width,
	                  beta, out, out_width);
}

void wlb_linear_backward(const struct wlb_parameters *p, void *d_x, double beta, const void *d_out, const void *x,
                         int tensor, int64_t rows)
{
	struct wlb_device *device = p->device;
	int64_t out_width = p->tensors[tensor].block.rows, in_width = p->tensors[tensor].block.cols;
	device->ops->gemm(device, 0, 0, rows, in_width, out_width, 1.0, d_out, out_width, wlb_weight(p, tensor),
	                  in_width, beta, d_x, in_width);
	device->ops->gemm(device, 1, 0, out_width, in_width, rows, 1.0, d_out, out_width, x, in_width, 1.0,
	                  wlb_gradient(p, tensor), in_width);
}
