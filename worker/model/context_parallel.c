#include "worker/model/context_parallel.h"

/* An exchange of a micro-batch and where its rows are. */
struct exchange {
	const struct wlb_exchange *about; /* NULL behind the last */
	struct wlb_comm *group;
	int number;
	int64_t first_row; /* of the group's rows, in kv_ranks */
	int64_t first_sum; /* of this rank's sums of gradients, in d_kv_all */
};

static struct exchange exchange_at(const struct wlb_transformer *t, const struct wlb_micro_batch *batch, int number,
                                   int64_t first_row, int64_t first_sum)
{
	if (number >= batch->exchange_count)
		return (struct exchange){.number = number, .first_row = first_row, .first_sum = first_sum};
	const struct wlb_exchange *about = &batch->exchanges[number];
	return (struct exchange){about, t->groups->key_groups[about->group], number, first_row, first_sum};
}

static struct exchange first_of(const struct wlb_transformer *t, const struct wlb_micro_batch *batch)
{
	return exchange_at(t, batch, 0, 0, 0);
}

static struct exchange after(const struct wlb_transformer *t, const struct wlb_micro_batch *batch,
                             const struct exchange *x)
{
	return exchange_at(t, batch, x->number + 1, x->first_row + wlb_comm_size(x->group) * x->about->rows,
	                   x->first_sum + x->about->rows);
}

static int await_all(struct wlb_transformer *t, const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	for (int e = 0; e < batch->exchange_count; e++)
		if (wlb_comm_wait(t->exchanges[e], error) < 0)
			return -1;
	return 0;
}

int wlb_cp_all_gather_start(struct wlb_transformer *t, const void *kv, int64_t stride,
                            const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	int64_t width = 2 * wlb_kv_width(t);
	enum wlb_dtype compute = t->device->compute;
	for (struct exchange x = first_of(t, batch); x.about != NULL; x = after(t, batch, &x)) {
		const struct wlb_exchange *about = x.about;
		void *ranks = wlb_element(compute, t->scratch.kv_ranks, x.first_row * width);
		void *own = wlb_element(compute, ranks, wlb_comm_rank(x.group) * about->rows * width);
		t->device->ops->gather_rows(t->device, own, width,
		                            (const char *)kv + wlb_bytes(compute, about->own_first * stride), stride,
		                            NULL, about->own_rows, width);
		if (wlb_comm_all_gather_overlapped(x.group, ranks, own, (size_t)(about->rows * width), compute,
		                                   &t->exchanges[x.number], error) < 0)
			return -1;
	}
	return 0;
}

int wlb_cp_all_gather_await(struct wlb_transformer *t, void *kv_all, const struct wlb_micro_batch *batch,
                            struct wlb_error *error)
{
	int64_t width = 2 * wlb_kv_width(t);
	if (await_all(t, batch, error) < 0)
		return -1;
	if (batch->exchange_count > 0)
		t->device->ops->gather_rows(t->device, kv_all, width, t->scratch.kv_ranks, width, batch->from_ranks,
		                            batch->tokens, width);
	return 0;
}

/* Returns the rows of all ranks in all exchanges. */
static int64_t exchanged_rows(const struct wlb_transformer *t, const struct wlb_micro_batch *batch)
{
	struct exchange x = first_of(t, batch);
	while (x.about != NULL)
		x = after(t, batch, &x);
	return x.first_row;
}

int wlb_cp_reduce_scatter_start(struct wlb_transformer *t, void *d_kv_all, const struct wlb_micro_batch *batch,
                                struct wlb_error *error)
{
	int64_t width = 2 * wlb_kv_width(t);
	enum wlb_dtype compute = t->device->compute;
	void *ranks = t->scratch.kv_ranks;
	if (batch->exchange_count > 0)
		t->device->ops->gather_rows(t->device, ranks, width, d_kv_all, width, batch->to_ranks,
		                            exchanged_rows(t, batch), width);
	for (struct exchange x = first_of(t, batch); x.about != NULL; x = after(t, batch, &x))
		if (wlb_comm_reduce_scatter_overlapped(x.group, wlb_element(compute, d_kv_all, x.first_sum * width),
		                                       wlb_element(compute, ranks, x.first_row * width),
		                                       (size_t)(x.about->rows * width), compute,
		                                       &t->exchanges[x.number], error) < 0)
			return -1;
	return 0;
}

int wlb_cp_reduce_scatter_await(struct wlb_transformer *t, void *d_kv, int64_t stride, void *d_kv_all,
                                const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	int64_t width = 2 * wlb_kv_width(t);
	enum wlb_dtype compute = t->device->compute;
	if (await_all(t, batch, error) < 0)
		return -1;
	for (struct exchange x = first_of(t, batch); x.about != NULL; x = after(t, batch, &x))
		t->device->ops->gather_rows(t->device, wlb_element(compute, d_kv, x.about->own_first * stride), stride,
		                            wlb_element(compute, d_kv_all, x.first_sum * width), width, NULL,
		                            x.about->own_rows, width);
	return 0;
}
