#include "worker/parts.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUFFERS = 3 };

static size_t buffer_bytes(const struct wlb_parts *parts)
{
	return parts->parameters->elements * wlb_dtype_bytes(parts->parameters->device->dtype);
}

static void *device_buffer(const struct wlb_parts *parts, int number)
{
	void *const buffers[BUFFERS] = {parts->parameters->weights, parts->optimizer->m, parts->optimizer->v};
	return buffers[number];
}

static void list_tensor(struct wlb_parts *parts, int buffer, int tensor)
{
	static const char *const prefixes[BUFFERS] = {"", "optimizer.m.", "optimizer.v."};
	const struct wlb_parameters *p = parts->parameters;
	const struct wlb_tensor *t = &p->tensors[tensor];
	size_t skip = t->offset * wlb_dtype_bytes(p->device->dtype);
	char *name = parts->names[parts->count];
	snprintf(name, sizeof(parts->names[0]), "%s%s", prefixes[buffer], t->name);
	parts->list[parts->count++] = (struct wlb_tensor_part){
		.name = name,
		.dtype = p->device->dtype,
		.dimensions = t->dimensions,
		.global_rows = t->rows,
		.cols = t->cols,
		.rows = t->rows,
		.data_host = parts->host + (size_t)buffer * buffer_bytes(parts) + skip,
	};
}

int wlb_parts_open(struct wlb_parts *parts, const struct wlb_parameters *parameters,
                   const struct wlb_optimizer *optimizer, struct wlb_error *error)
{
	*parts = (struct wlb_parts){.parameters = parameters, .optimizer = optimizer};
	size_t count = (size_t)parameters->count * BUFFERS, bytes = BUFFERS * buffer_bytes(parts);
	parts->list = calloc(count, sizeof(*parts->list));
	parts->names = calloc(count, sizeof(*parts->names));
	parts->host = malloc(bytes);
	if (parts->list == NULL || parts->names == NULL || parts->host == NULL) {
		wlb_parts_close(parts);
		return wlb_fail(error, "out of memory: a checkpoint passes through %zu bytes of host memory", bytes);
	}
	for (int buffer = 0; buffer < BUFFERS; buffer++)
		for (int tensor = 0; tensor < parameters->count; tensor++)
			list_tensor(parts, buffer, tensor);
	return 0;
}

void wlb_parts_close(struct wlb_parts *parts)
{
	free(parts->list);
	free(parts->names);
	free(parts->host);
	*parts = (struct wlb_parts){0};
}

int wlb_parts_fetch(struct wlb_parts *parts, struct wlb_error *error)
{
	struct wlb_device *device = parts->parameters->device;
	size_t bytes = buffer_bytes(parts);
	for (int i = 0; i < BUFFERS; i++)
		device->ops->to_host(device, parts->host + (size_t)i * bytes, device_buffer(parts, i), bytes);
	return device->ops->synchronize(device, error);
}

/* Tensor by tensor: the padding between them stays the device's zeros. */
int wlb_parts_store(struct wlb_parts *parts, struct wlb_error *error)
{
	const struct wlb_parameters *p = parts->parameters;
	size_t real_bytes = wlb_dtype_bytes(p->device->dtype);
	for (int i = 0; i < parts->count; i++) {
		const struct wlb_tensor *t = &p->tensors[i % p->count];
		char *to = (char *)device_buffer(parts, i / p->count) + t->offset * real_bytes;
		p->device->ops->to_device(p->device, to, parts->list[i].data_host,
		                          (size_t)(t->rows * t->cols) * real_bytes);
	}
	return p->device->ops->synchronize(p->device, error);
}
