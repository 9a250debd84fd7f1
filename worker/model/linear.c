#include "worker/model/linear.h"

struct wlb_matrix wlb_matrix_of(const struct wlb_parameters *p, int first, int last)
{
	struct wlb_matrix w = {
		.weight = {wlb_weight(p, first), 0, p->tensors[first].block.cols},
		.gradient = wlb_gradient(p, first),
		.tensors = &p->tensors[first],
		.count = last - first + 1,
	};
	for (int i = first; i <= last; i++)
		w.weight.out += p->tensors[i].block.rows;
	return w;
}

void wlb_linear(struct wlb_device *device, void *y, int64_t y_stride, const void *x, const struct wlb_matrix *w,
                const void *residual, int64_t n)
{
	device->ops->linear(device, y, y_stride, x, w->weight.in, &w->weight, residual, n);
}

void wlb_linear_d_x(struct wlb_device *device, void *d_x, int add, const void *d_y, int64_t d_y_stride,
                    const struct wlb_matrix *w, int64_t n)
{
	device->ops->linear_d_x(device, d_x, w->weight.in, d_y, d_y_stride, &w->weight, add, n);
}

void wlb_linear_d_w(struct wlb_device *device, const void *d_y, int64_t d_y_stride, const void *x,
                    const struct wlb_matrix *w, int64_t n)
{
	if (n == 0)
		return;
	device->ops->linear_d_w(device, w->gradient, d_y, d_y_stride, x, w->weight.in, w->tensors->is_added_to, n,
	                        w->weight.out, w->weight.in);
	for (int i = 0; i < w->count; i++)
		w->tensors[i].is_added_to = 1;
}
