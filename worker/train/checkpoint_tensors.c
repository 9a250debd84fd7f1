#include "worker/train/checkpoint_tensors.h"

#include <stdio.h>
#include <stdlib.h>

static size_t tensor_bytes(const struct wlb_parameters *p, const struct wlb_tensor *t)
{
	return (size_t)wlb_tensor_block_elements(&t->block) * wlb_dtype_bytes(p->device->main);
}

/* Appends the tensor; its data follow those of the part before. */
static void list_tensor(struct wlb_parts *parts, enum wlb_state state, const struct wlb_tensor *t, size_t *bytes)
{
	static const char *const prefixes[WLB_STATES] = {"", "optimizer.m.", "optimizer.v."};
	struct wlb_part_source *source = &parts->sources[parts->count];
	source->state = state;
	source->tensor = t;
	snprintf(source->name, sizeof(source->name), "%s%s", prefixes[state], t->name);
	parts->list[parts->count++] = (struct wlb_tensor_part){
		.name = source->name,
		.dtype = parts->parameters->device->main,
		.block = t->block,
		.data_host = parts->host + *bytes,
	};
	*bytes += tensor_bytes(parts->parameters, t);
}

/* Lists the states [first, end) of the tensors that the rank holds, or of those that it owns. */
static int open_parts(struct wlb_parts *parts, const struct wlb_parameters *p, enum wlb_state first, enum wlb_state end,
                      int owned_only, struct wlb_error *error)
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
	for (enum wlb_state state = first; state < end; state++)
		for (int i = 0; i < p->count; i++)
			if (!owned_only || p->tensors[i].owned)
				list_tensor(parts, state, &p->tensors[i], &bytes);
	return 0;
}

int wlb_parts_open_owned(struct wlb_parts *parts, const struct wlb_parameters *p, struct wlb_error *error)
{
	return open_parts(parts, p, WLB_STATE_MASTERS, WLB_STATES, 1, error);
}

int wlb_parts_open_held(struct wlb_parts *parts, const struct wlb_parameters *p, enum wlb_state state,
                        struct wlb_error *error)
{
	return open_parts(parts, p, state, state + 1, 0, error);
}

void wlb_parts_close(struct wlb_parts *parts)
{
	free(parts->list);
	free(parts->sources);
	free(parts->host);
	*parts = (struct wlb_parts){0};
}

void wlb_parts_fetch(struct wlb_parts *parts, enum wlb_state state, int bucket, const void *values)
{
	const struct wlb_parameters *p = parts->parameters;
	for (int i = 0; i < parts->count; i++) {
		const struct wlb_part_source *source = &parts->sources[i];
		if (source->state != state || source->tensor->bucket != bucket)
			continue;
		size_t first = source->tensor->offset - p->buckets[bucket].offset;
		p->device->ops->to_host(p->device, parts->list[i].data_host,
		                        (const char *)values + first * wlb_dtype_bytes(p->device->main),
		                        tensor_bytes(p, source->tensor));
	}
}

int wlb_parts_store(const struct wlb_parts *parts, struct wlb_optimizer *optimizer, struct wlb_error *error)
{
	const struct wlb_parameters *p = parts->parameters;
	for (int i = 0; i < parts->count; i++) {
		const struct wlb_part_source *source = &parts->sources[i];
		if (wlb_optimizer_store(optimizer, source->state, (int)(source->tensor - p->tensors),
		                        parts->list[i].data_host, error) < 0)
			return -1;
	}
	return p->device->ops->synchronize(p->device, error);
}
