#include "worker/model/gradients.h"

void wlb_gradients_begin(const struct wlb_parameters *p)
{
	for (int i = 0; i < p->count; i++)
		p->tensors[i].is_added_to = 0;
}

void *wlb_gradient_to_add(const struct wlb_parameters *p, int tensor)
{
	struct wlb_tensor *t = &p->tensors[tensor];
	void *gradient = wlb_gradient(p, tensor);
	if (!t->is_added_to)
		p->device->ops->zero(p->device, gradient,
		                     (size_t)wlb_tensor_block_elements(&t->block) *
		                             wlb_dtype_bytes(p->device->gradients));
	t->is_added_to = 1;
	return gradient;
}

/* Zeroes what follows a tensor's gradient: other buckets may have used this memory. */
static void zero_padding(const struct wlb_parameters *p, int tensor)
{
	const struct wlb_tensor *t = &p->tensors[tensor];
	size_t bytes = wlb_dtype_bytes(p->device->gradients);
	char *end = (char *)wlb_gradient(p, tensor) + (size_t)wlb_tensor_block_elements(&t->block) * bytes;
	if (t->padding > 0)
		p->device->ops->zero(p->device, end, t->padding * bytes);
}

void wlb_gradients_complete(const struct wlb_parameters *p, int bucket)
{
	for (int i = 0; i < p->count; i++) {
		if (p->tensors[i].bucket != bucket)
			continue;
		wlb_gradient_to_add(p, i);
		if (p->buckets[bucket].is_passing)
			zero_padding(p, i);
	}
}

void wlb_gradients_pass(const struct wlb_parameters *p, int bucket)
{
	for (int i = 0; i < p->count; i++)
		if (p->tensors[i].bucket == bucket)
			p->tensors[i].is_added_to = 0;
}
