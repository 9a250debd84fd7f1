#include "worker/train/checkpoint_tensors.h"

#include <stdio.h>
#include <stdlib.h>

static size_t tensor_bytes(const struct wlb_parameters *p, const struct wlb_tensor *t)
{
	return (size_t)wlb_tensor_block_elements(&t->block) * wlb_dtype_bytes(p->device->main);
}

/* Appends the tensor, whose data begin at byte `offset` of the host's. */
static void list_tensor(struct wlb_parts *parts, enum wlb_state state, const struct wlb_tensor *t, size_t offset)
{
	static const char *const prefixes[WLB_STATES] = {"", "optimizer.m.", "optimizer.v."};
	struct wlb_part_source *source = &parts->sources[parts->count];
	source->state = state;
	source->tensor = t;
	source->offset = offset;
	snprintf(source->name, sizeof(source->name), "%s%s", prefixes[state], t->name);
	parts->list[parts->count++] = (struct wlb_tensor_part){
		.name = source->name,
		.dtype = parts->parameters->device->main,
		.block = t->block,
	};
}

/* Appends one state of the tensors of a bucket; their data follow each other from byte `end` on. Returns where they
 * end. */
static size_t list_bucket(struct wlb_parts *parts, enum wlb_state state, int bucket, int owned_only, size_t end)
{
	const struct wlb_parameters *p = parts->parameters;
	for (int i = 0; i < p->count; i++) {
		const struct wlb_tensor *t = &p->tensors[i];
		if (t->bucket != bucket || (owned_only && !t->owned))
			continue;
		list_tensor(parts, state, t, end);
		end += tensor_bytes(p, t);
	}
	return end;
}

static int allocate_host(struct wlb_parts *parts, size_t bytes, struct wlb_error *error)
{
	parts->host = malloc(bytes + 1);
	if (parts->host == NULL)
		return wlb_fail(error, "out of memory: a checkpoint passes through %zu bytes of host memory", bytes);
	for (int i = 0; i < parts->count; i++)
		parts->list[i].data_host = parts->host + parts->sources[i].offset;
	return 0;
}

/* Lists the states [first, end) of the tensors that the rank holds, with memory for all; or of those that it owns, with
 * memory for one state of one bucket. */
static int open_parts(struct wlb_parts *parts, const struct wlb_parameters *p, enum wlb_state first, enum wlb_state end,
                      int owned, struct wlb_error *error)
{
	*parts = (struct wlb_parts){.parameters = p};
	/* One more element, since a rank may own nothing. */
	size_t most = (size_t)(end - first) * (size_t)p->count + 1, bytes = 0, largest = 0;
	parts->list = calloc(most, sizeof(*parts->list));
	parts->sources = calloc(most, sizeof(*parts->sources));
	int rc = parts->list != NULL && parts->sources != NULL ? 0 : wlb_fail(error, "out of memory for a checkpoint");
	for (enum wlb_state state = first; rc == 0 && state < end; state++)
		for (int b = 0; b < p->bucket_count; b++) {
			bytes = list_bucket(parts, state, b, owned, owned ? 0 : bytes);
			largest = bytes > largest ? bytes : largest;
		}
	if (rc == 0)
		rc = allocate_host(parts, largest, error);
	if (rc < 0)
		wlb_parts_close(parts);
	return rc;
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

int wlb_parts_find(const struct wlb_parts *parts, enum wlb_state state, int bucket, int *count)
{
	int first = 0;
	*count = 0;
	for (int i = 0; i < parts->count; i++)
		if (parts->sources[i].state == state && parts->sources[i].tensor->bucket == bucket && (*count)++ == 0)
			first = i;
	return first;
}

void wlb_parts_fetch(struct wlb_parts *parts, int first, int count, const void *values)
{
	const struct wlb_parameters *p = parts->parameters;
	for (int i = first; i < first + count; i++) {
		const struct wlb_tensor *t = parts->sources[i].tensor;
		size_t skipped = t->offset - p->buckets[t->bucket].offset;
		p->device->ops->to_host(p->device, parts->list[i].data_host,
		                        (const char *)values + skipped * wlb_dtype_bytes(p->device->main),
		                        tensor_bytes(p, t));
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
