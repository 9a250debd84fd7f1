#include "worker/train/checkpoint_tensors.h"

#include <stdio.h>
#include <stdlib.h>

static size_t tensor_bytes(const struct wlb_parameters *p, const struct wlb_tensor *t)
{
	return (size_t)wlb_tensor_block_elements(&t->block) * wlb_dtype_bytes(p->device->main);
}

/* Appends the tensor; its data follow those of the part before. */
static void list_tensor(struct wlb_parts *parts, enum wlb_part_kind kind, const struct wlb_tensor *t, size_t *bytes)
{
	static const char *const prefixes[WLB_PART_KINDS] = {"", "optimizer.m.", "optimizer.v."};
	struct wlb_part_source *source = &parts->sources[parts->count];
	source->kind = kind;
	source->tensor = t;
	snprintf(source->name, sizeof(source->name), "%s%s", prefixes[kind], t->name);
	parts->list[parts->count++] = (struct wlb_tensor_part){
		.name = source->name,
		.dtype = parts->parameters->device->main,
		.block = t->block,
		.data_host = parts->host + *bytes,
	};
	*bytes += tensor_bytes(parts->parameters, t);
}

/* Lists the kinds [first, end) of the tensors that the rank holds, or of those that it owns. */
static int open_parts(struct wlb_parts *parts, const struct wlb_parameters *p, enum wlb_part_kind first,
                      enum wlb_part_kind end, int owned_only, struct wlb_error *error)
{
	*parts = (struct wlb_parts){.parameters = p};
	size_t count = 0, bytes = 0;
	for (int i = 0; i < p->count; i++) {
		if (owned_only && !p->tensors[i].owned)
			continue;
		count += end - first;
		bytes += (end - first) * tensor_bytes(p, &p->tensors[i]);
	}
	/* One more element, since a rank may own nothing. */
	parts->list = calloc(count + 1, sizeof(*parts->list));
	parts->sources = calloc(count + 1, sizeof(*parts->sources));
	parts->host = malloc(bytes + 1);
	if (parts->list == NULL || parts->sources == NULL || parts->host == NULL) {
		wlb_parts_close(parts);
		return wlb_fail(error, "out of memory: a checkpoint passes through %zu bytes of host memory", bytes);
	}
	bytes = 0;
	for (enum wlb_part_kind kind = first; kind < end; kind++)
		for (int i = 0; i < p->count; i++)
			if (!owned_only || p->tensors[i].owned)
				list_tensor(parts, kind, &p->tensors[i], &bytes);
	return 0;
}

int wlb_parts_open_owned(struct wlb_parts *parts, const struct wlb_parameters *p, struct wlb_error *error)
{
	return open_parts(parts, p, WLB_PART_WEIGHT, WLB_PART_KINDS, 1, error);
}

int wlb_parts_open_held(struct wlb_parts *parts, const struct wlb_parameters *p, enum wlb_part_kind kind,
                        struct wlb_error *error)
{
	return open_parts(parts, p, kind, kind + 1, 0, error);
}

void wlb_parts_close(struct wlb_parts *parts)
{
	free(parts->list);
	free(parts->sources);
	free(parts->host);
	*parts = (struct wlb_parts){0};
}

/* Returns the data of the part on the device; they do not include the padding between tensors. */
static void *device_data(const struct wlb_parts *parts, const struct wlb_part_source *source)
{
	const struct wlb_parameters *p = parts->parameters;
	char *buffer = source->kind == WLB_PART_WEIGHT ? p->weights : p->gradients;
	return buffer + source->tensor->offset * wlb_dtype_bytes(p->device->main);
}

int wlb_parts_fetch(struct wlb_parts *parts, enum wlb_part_kind kind, struct wlb_error *error)
{
	if (parts->count == 0)
		return 0;
	struct wlb_device *device = parts->parameters->device;
	for (int i = 0; i < parts->count; i++) {
		const struct wlb_part_source *source = &parts->sources[i];
		if (source->kind == kind)
			device->ops->to_host(device, parts->list[i].data_host, device_data(parts, source),
			                     tensor_bytes(parts->parameters, source->tensor));
	}
	return device->ops->synchronize(device, error);
}

int wlb_parts_store(const struct wlb_parts *parts, struct wlb_error *error)
{
	struct wlb_device *device = parts->parameters->device;
	for (int i = 0; i < parts->count; i++) {
		const struct wlb_part_source *source = &parts->sources[i];
		device->ops->to_device(device, NULL, device_data(parts, source), parts->list[i].data_host,
		                       tensor_bytes(parts->parameters, source->tensor));
	}
	return device->ops->synchronize(device, error);
}
