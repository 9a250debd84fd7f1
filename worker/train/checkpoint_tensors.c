#include "worker/train/checkpoint_tensors.h"

#include <stdio.h>
#include <stdlib.h>

#include "worker/model/published.h"

static size_t part_bytes(const struct wlb_tensor_part *part)
{
	const struct wlb_element_range range = wlb_tensor_part_range(part);
	return (size_t)(range.end - range.begin) * wlb_dtype_bytes(part->dtype);
}

/* Returns the elements of the tensor that are in the member's part of its bucket; empty where there are none. */
static struct wlb_element_range find_elements(const struct wlb_parameters *p, const struct wlb_tensor *t, int member)
{
	const struct wlb_bucket *bucket = &p->buckets[t->bucket];
	int64_t elements = wlb_tensor_block_elements(&t->block), part_elements = (int64_t)bucket->elements / p->shards;
	/* Where the part begins and ends, counted from the tensor's first element. */
	int64_t begin = (int64_t)bucket->offset + member * part_elements - (int64_t)t->offset;
	int64_t end = begin + part_elements < elements ? begin + part_elements : elements;
	begin = begin > 0 ? begin : 0;
	return begin < end ? (struct wlb_element_range){begin, end} : (struct wlb_element_range){0, 0};
}

/* Appends one state of the elements. */
static void list_elements(struct wlb_parts *parts, enum wlb_state state, const struct wlb_tensor *t,
                          struct wlb_element_range elements)
{
	static const char *const prefixes[WLB_STATES] = {"", "optimizer.m.", "optimizer.v."};
	struct wlb_part_source *source = &parts->sources[parts->count];
	*source = (struct wlb_part_source){.state = state, .tensor = t};
	snprintf(source->name, sizeof(source->name), "%s%s", prefixes[state], t->name);
	parts->list[parts->count++] = (struct wlb_tensor_part){
		.name = source->name,
		.dtype = parts->parameters->device->master,
		.block = t->block,
		.range = elements,
		.is_copy = !t->owned,
	};
}

/* Appends the states [first, end) of the elements of tensors that the rank owns, or of those that it does not. */
static void list_all(struct wlb_parts *parts, int member, enum wlb_state first, enum wlb_state end, int owned)
{
	const struct wlb_parameters *p = parts->parameters;
	for (enum wlb_state state = first; state < end; state++)
		for (int i = 0; i < p->count; i++) {
			const struct wlb_element_range elements = find_elements(p, &p->tensors[i], member);
			if (elements.end > 0 && !p->tensors[i].owned == !owned)
				list_elements(parts, state, &p->tensors[i], elements);
		}
}

static int allocate_host(struct wlb_parts *parts, struct wlb_error *error)
{
	struct wlb_device *device = parts->parameters->device;
	size_t offset = 0;
	for (int i = 0; i < parts->count; i++)
		parts->host_bytes += part_bytes(&parts->list[i]);
	parts->host = device->ops->alloc_host(device, parts->host_bytes + 1, error);
	if (parts->host == NULL)
		return wlb_fail_in(error, "a checkpoint takes %zu bytes of host memory", parts->host_bytes);
	for (int i = 0; i < parts->count; i++) {
		parts->list[i].data_host = parts->host + offset;
		offset += part_bytes(&parts->list[i]);
	}
	return 0;
}

int wlb_parts_open(struct wlb_parts *parts, const struct wlb_parameters *p, int member, enum wlb_state first,
                   enum wlb_state end, int only_owned, struct wlb_error *error)
{
	*parts = (struct wlb_parts){.parameters = p};
	/* One more element, since a rank may own nothing. */
	size_t most = (size_t)(end - first) * (size_t)p->count + 1;
	parts->list = calloc(most, sizeof(*parts->list));
	parts->sources = calloc(most, sizeof(*parts->sources));
	int rc = parts->list != NULL && parts->sources != NULL ? 0 : wlb_fail(error, "out of memory for a checkpoint");
	if (rc == 0)
		list_all(parts, member, first, end, 1);
	parts->owned = parts->count;
	if (rc == 0 && !only_owned)
		list_all(parts, member, first, end, 0);
	if (rc == 0)
		rc = allocate_host(parts, error);
	if (rc < 0)
		wlb_parts_close(parts);
	return rc;
}

void wlb_parts_close(struct wlb_parts *parts)
{
	if (parts->host != NULL)
		parts->parameters->device->ops->release_host(parts->parameters->device, parts->host);
	free(parts->list);
	free(parts->sources);
	*parts = (struct wlb_parts){0};
}

void wlb_parts_place_in_published(struct wlb_parts *parts)
{
	for (int i = 0; i < parts->count; i++)
		wlb_published_block(&parts->parameters->shape, parts->sources[i].tensor->name, parts->sources[i].name,
		                    &parts->list[i].block);
}

static int tensor_index(const struct wlb_parts *parts, int i)
{
	return (int)(parts->sources[i].tensor - parts->parameters->tensors);
}

int wlb_parts_fetch(struct wlb_parts *parts, struct wlb_optimizer *optimizer, struct wlb_queue *queue,
                    struct wlb_error *error)
{
	for (int i = 0; i < parts->count; i++)
		if (wlb_optimizer_fetch(optimizer, queue, parts->sources[i].state, tensor_index(parts, i),
		                        parts->list[i].range, parts->list[i].data_host, error) < 0)
			return -1;
	return 0;
}

int wlb_parts_join(struct wlb_parts *parts, const struct wlb_optimizer *optimizer, struct wlb_error *error)
{
	for (int i = 0; wlb_optimizer_has_halves(optimizer) && i < parts->count; i++) {
		const struct wlb_element_range elements = parts->list[i].range;
		if (parts->sources[i].state == WLB_STATE_MASTERS &&
		    wlb_optimizer_join(parts->list[i].data_host, (size_t)(elements.end - elements.begin), error) < 0)
			return -1;
	}
	return 0;
}

int wlb_parts_store(const struct wlb_parts *parts, struct wlb_optimizer *optimizer, struct wlb_error *error)
{
	struct wlb_device *device = parts->parameters->device;
	for (int i = 0; i < parts->count; i++)
		if (wlb_optimizer_store_range(optimizer, parts->sources[i].state, tensor_index(parts, i),
		                              parts->list[i].range, parts->list[i].data_host, error) < 0)
			return -1;
	return device->ops->synchronize(device, error);
}
