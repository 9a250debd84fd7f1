#include "worker/model/parameters.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/bfloat16.h"
#include "libwlb/hash.h"
#include "worker/model/partition.h"
#include "worker/model/philox.h"

static int allocate_buffers(struct wlb_parameters *p, struct wlb_error *error)
{
	struct wlb_device *device = p->device;
	p->weights = device->ops->alloc(device, p->elements * wlb_dtype_bytes(device->compute), error);
	if (p->weights == NULL)
		return wlb_fail_in(error, "weights of this rank's %zu parameters", p->elements);
	p->gradients = device->ops->alloc(device, p->gradient_elements * wlb_dtype_bytes(device->gradients), error);
	if (p->gradients != NULL)
		return 0;
	return wlb_fail_in(error, "gradients of this rank's %zu parameters", p->elements);
}

static struct wlb_parameters *new_table(const struct wlb_model *shape, struct wlb_device *device,
                                        struct wlb_error *error)
{
	struct wlb_parameters *p = calloc(1, sizeof(*p));
	if (p == NULL) {
		wlb_fail(error, "out of memory for the table of parameters");
		return NULL;
	}
	p->shape = *shape;
	p->device = device;
	return p;
}

struct wlb_parameters *wlb_parameters_of_model(const struct wlb_model *shape, struct wlb_device *device,
                                               struct wlb_error *error)
{
	const struct wlb_plan alone = {.layout = {1, 1, 1, 1}, .interleave = 1, .micro_batches = 1, .zero_stage = 1};
	const struct wlb_coordinates first = {0};
	struct wlb_parameters *p = new_table(shape, device, error);
	if (p == NULL || wlb_parameters_list(p, &alone, &first, error) == 0)
		return p;
	wlb_parameters_free(p);
	return NULL;
}

struct wlb_parameters *wlb_parameters_new(const struct wlb_model *shape, const struct wlb_plan *plan,
                                          const struct wlb_coordinates *coords, struct wlb_device *device,
                                          struct wlb_error *error)
{
	struct wlb_parameters *p = new_table(shape, device, error);
	if (p == NULL)
		return NULL;
	if (wlb_parameters_list(p, plan, coords, error) == 0 && wlb_parameters_bucket(p, plan, coords, error) == 0 &&
	    allocate_buffers(p, error) == 0)
		return p;
	wlb_parameters_free(p);
	return NULL;
}

void wlb_parameters_free(struct wlb_parameters *p)
{
	if (p == NULL)
		return;
	p->device->ops->release(p->device, p->weights);
	p->device->ops->release(p->device, p->gradients);
	if (p->chunks != NULL)
		free(p->chunks[0].tensors);
	free(p->chunks);
	free(p->buckets);
	free(p->tensors);
	free(p);
}

void *wlb_weight(const struct wlb_parameters *p, int tensor)
{
	return (char *)p->weights + p->tensors[tensor].offset * wlb_dtype_bytes(p->device->compute);
}

void *wlb_gradient(const struct wlb_parameters *p, int tensor)
{
	const struct wlb_tensor *t = &p->tensors[tensor];
	const struct wlb_bucket *bucket = &p->buckets[t->bucket];
	size_t offset = bucket->gradient_offset + (t->offset - bucket->offset);
	return (char *)p->gradients + offset * wlb_dtype_bytes(p->device->gradients);
}

/* The number of a tensor's stream of random numbers. */
static uint64_t stream_of(const char *name)
{
	return wlb_hash_text(WLB_HASH_OF_NOTHING, name);
}

/* How the weights of one tensor are drawn. */
struct draw {
	const struct wlb_tensor *tensor;
	enum wlb_dtype dtype;
	uint64_t seed, stream;
	double std;
};

static void fill_row(const struct draw *draw, int64_t row, void *out_host)
{
	enum { PART = 512 };
	const struct wlb_tensor_block *block = &draw->tensor->block;
	double values[PART];
	for (int64_t done = 0; done < block->cols; done += PART) {
		int64_t count = block->cols - done < PART ? block->cols - done : PART;
		uint64_t first = (uint64_t)((block->row_start + row) * block->global_cols + block->col_start + done);
		enum wlb_init init = draw->tensor->init;
		int is_constant = init == WLB_INIT_ONES || init == WLB_INIT_ZEROS;
		if (!is_constant)
			wlb_philox_normals(draw->seed, draw->stream, first, count, values);
		for (int64_t i = 0; i < count; i++)
			wlb_dtype_store(draw->dtype, out_host, row * block->cols + done + i,
			                is_constant ? (double)(init == WLB_INIT_ONES) : draw->std * values[i]);
	}
}

/* Each number depends on its place alone, so that any number of threads gives the same bits. */
static void fill(const struct draw *draw, int threads, void *out_host)
{
	int64_t rows = draw->tensor->block.rows;
	threads = threads > 1 ? threads : 1;
#pragma omp parallel for schedule(static) num_threads(threads)
	for (int64_t row = 0; row < rows; row++)
		fill_row(draw, row, out_host);
}

int wlb_weight_set(const struct wlb_parameters *p, int tensor, const void *values_host, struct wlb_error *error)
{
	const struct wlb_element_range all = {0, wlb_tensor_block_elements(&p->tensors[tensor].block)};
	return wlb_weight_set_range(p, tensor, all, values_host, error);
}

int wlb_weight_set_range(const struct wlb_parameters *p, int tensor, struct wlb_element_range elements,
                         const void *values_host, struct wlb_error *error)
{
	struct wlb_device *device = p->device;
	int64_t count = elements.end - elements.begin;
	char *weights = (char *)wlb_weight(p, tensor) + (size_t)elements.begin * wlb_dtype_bytes(device->compute);
	int threads = device->host_threads > 1 ? device->host_threads : 1;
	size_t bytes = (size_t)count * wlb_dtype_bytes(device->compute);
	if (device->compute == device->master) {
		device->ops->to_device(device, NULL, weights, values_host, bytes);
		return 0;
	}
	uint16_t *rounded = malloc(bytes);
	if (rounded == NULL)
		return wlb_fail(error, "out of memory: %zu bytes to round %s", bytes, p->tensors[tensor].name);
#pragma omp parallel for schedule(static) num_threads(threads)
	for (int64_t i = 0; i < count; i++)
		rounded[i] = wlb_split_master(((const float *)values_host)[i]).weight;
	device->ops->to_device(device, NULL, weights, rounded, bytes);
	free(rounded);
	return 0;
}

/* The wlb_tensor_store that sets the weights alone. */
static int store_weight(void *parameters, int tensor, const void *values_host, struct wlb_error *error)
{
	return wlb_weight_set(parameters, tensor, values_host, error);
}

int wlb_parameters_init(struct wlb_parameters *p, uint64_t seed, double init_std, wlb_tensor_store *store,
                        void *context, struct wlb_error *error)
{
	enum wlb_dtype dtype = p->device->master;
	double output_std = init_std / sqrt(2.0 * (double)p->shape.num_hidden_layers);
	if (wlb_dtype_check(dtype, error) < 0 || wlb_dtype_check(p->device->compute, error) < 0)
		return -1;
	for (int i = 0; i < p->count; i++) {
		const struct wlb_tensor *tensor = &p->tensors[i];
		size_t bytes = (size_t)wlb_tensor_block_elements(&tensor->block) * wlb_dtype_bytes(dtype);
		if (bytes == 0)
			continue; /* more ranks than rows */
		void *host = malloc(bytes);
		if (host == NULL)
			return wlb_fail(error, "out of memory: %zu bytes to fill %s", bytes, tensor->name);
		const struct draw draw = {tensor, dtype, seed, stream_of(tensor->name),
		                          tensor->init == WLB_INIT_OUTPUT ? output_std : init_std};
		fill(&draw, p->device->host_threads, host);
		int rc = store != NULL ? store(context, i, host, error) : store_weight(p, i, host, error);
		free(host);
		if (rc < 0)
			return -1;
	}
	return p->device->ops->synchronize(p->device, error);
}
