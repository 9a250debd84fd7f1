#include "worker/train/checkpoint_tensors.h"

#include <stdio.h>
#include <stdlib.h>

enum { OWNED = -1 }; /* instead of a member of the data group: whole tensors, of those that the rank owns */

static size_t part_bytes(const struct wlb_tensor_part *part)
{
	return (size_t)wlb_tensor_block_elements(&part->block) * wlb_dtype_bytes(part->dtype);
}

/* Rows [first, end) of a tensor's block. */
struct rows {
	int64_t first;
	int64_t end;
};

/* Returns the rows with elements of the member's part of the tensor's bucket; for OWNED, all rows of an owned tensor.
 */
static struct rows find_rows(const struct wlb_parameters *p, const struct wlb_tensor *t, int member)
{
	const struct wlb_bucket *bucket = &p->buckets[t->bucket];
	int64_t cols = t->block.cols, elements = wlb_tensor_block_elements(&t->block);
	int64_t part_elements = (int64_t)bucket->elements / p->shards;
	if (member == OWNED)
		return (struct rows){0, t->owned ? t->block.rows : -1};
	/* Where the part begins and ends, counted from the tensor's first element. */
	int64_t begin = (int64_t)bucket->offset + member * part_elements - (int64_t)t->offset;
	int64_t end = begin + part_elements < elements ? begin + part_elements : elements;
	begin = begin > 0 ? begin : 0;
	if (begin >= end)
		return (struct rows){0, -1};
	return (struct rows){begin / cols, (end + cols - 1) / cols};
}

/* Appends these rows of the tensor, whose data begin at byte `offset` of the host's. */
static void list_rows(struct wlb_parts *parts, enum wlb_state state, const struct wlb_tensor *t, struct rows rows,
                      size_t offset)
{
	static const char *const prefixes[WLB_STATES] = {"", "optimizer.m.", "optimizer.v."};
	struct wlb_part_source *source = &parts->sources[parts->count];
	source->state = state;
	source->tensor = t;
	source->row = rows.first;
	source->offset = offset;
	snprintf(source->name, sizeof(source->name), "%s%s", prefixes[state], t->name);
	struct wlb_tensor_part *part = &parts->list[parts->count++];
	*part = (struct wlb_tensor_part){
		.name = source->name,
		.dtype = parts->parameters->device->master,
		.block = t->block,
	};
	part->block.row_start += rows.first;
	part->block.rows = rows.end - rows.first;
}

/* Appends one state of the tensors of a bucket; their data follow each other from byte `end` on. Returns where they
 * end. */
static size_t list_bucket(struct wlb_parts *parts, enum wlb_state state, int bucket, int member, size_t end)
{
	const struct wlb_parameters *p = parts->parameters;
	for (int i = 0; i < p->count; i++) {
		const struct wlb_tensor *t = &p->tensors[i];
		struct rows rows = find_rows(p, t, member);
		if (t->bucket != bucket || rows.end < 0)
			continue;
		list_rows(parts, state, t, rows, end);
		end += part_bytes(&parts->list[parts->count - 1]);
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

/* Lists the states [first, end) of what a member of the data group keeps, with memory for all; or, for OWNED, of the
 * tensors that the rank owns, with memory for one state of one bucket. */
static int open_parts(struct wlb_parts *parts, const struct wlb_parameters *p, enum wlb_state first, enum wlb_state end,
                      int member, struct wlb_error *error)
{
	*parts = (struct wlb_parts){.parameters = p};
	/* One more element, since a rank may own nothing. */
	size_t most = (size_t)(end - first) * (size_t)p->count + 1, bytes = 0, largest = 0;
	parts->list = calloc(most, sizeof(*parts->list));
	parts->sources = calloc(most, sizeof(*parts->sources));
	int rc = parts->list != NULL && parts->sources != NULL ? 0 : wlb_fail(error, "out of memory for a checkpoint");
	for (enum wlb_state state = first; rc == 0 && state < end; state++)
		for (int b = 0; b < p->bucket_count; b++) {
			bytes = list_bucket(parts, state, b, member, member == OWNED ? 0 : bytes);
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
	return open_parts(parts, p, WLB_STATE_MASTERS, WLB_STATES, OWNED, error);
}

int wlb_parts_open_kept(struct wlb_parts *parts, const struct wlb_parameters *p, int member, enum wlb_state state,
                        struct wlb_error *error)
{
	return open_parts(parts, p, state, state + 1, member, error);
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
		                        (const char *)values + skipped * wlb_dtype_bytes(p->device->master),
		                        part_bytes(&parts->list[i]));
	}
}

int wlb_parts_store(const struct wlb_parts *parts, struct wlb_optimizer *optimizer, struct wlb_error *error)
{
	const struct wlb_parameters *p = parts->parameters;
	for (int i = 0; i < parts->count; i++) {
		const struct wlb_part_source *source = &parts->sources[i];
		if (wlb_optimizer_store_rows(optimizer, source->state, (int)(source->tensor - p->tensors), source->row,
		                             parts->list[i].block.rows, parts->list[i].data_host, error) < 0)
			return -1;
	}
	return p->device->ops->synchronize(p->device, error);
}
