#include "worker/model/parameters.h"

#include <math.h>
#include <stdlib.h>

#include "worker/model/partition.h"
#include "worker/model/philox.h"

static int allocate_buffers(struct wlb_parameters *p, struct wlb_error *error)
{
	struct wlb_device *device = p->device;
	p->weights = device->ops->alloc(device, p->elements * wlb_dtype_bytes(device->compute), error);
	p->gradients = p->weights != NULL
	                       ? device->ops->alloc(device, p->elements * wlb_dtype_bytes(device->main), error)
	                       : NULL;
	if (p->gradients != NULL)
		return 0;
	return wlb_fail_in(error, "weights and gradients of this rank's %zu parameters", p->elements);
}

struct wlb_parameters *wlb_parameters_new(const struct wlb_model *shape, const struct wlb_plan *plan,
                                          const struct wlb_coordinates *at, struct wlb_device *device,
                                          struct wlb_error *error)
{
	struct wlb_parameters *p = calloc(1, sizeof(*p));
	if (p == NULL) {
		wlb_fail(error, "out of memory for the table of parameters");
		return NULL;
	}
	p->shape = *shape;
	p->device = device;
	if (wlb_parameters_list(p, plan, at, error) == 0 && wlb_parameters_bucket(p, &plan->layout, at, error) == 0 &&
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

static void *at(const struct wlb_parameters *p, void *buffer, enum wlb_dtype dtype, int tensor)
{
	return (char *)buffer + p->tensors[tensor].offset * wlb_dtype_bytes(dtype);
}

void *wlb_weight(const struct wlb_parameters *p, int tensor)
{
	return at(p, p->weights, p->device->compute, tensor);
}

void *wlb_gradient(const struct wlb_parameters *p, int tensor)
{
	return at(p, p->gradients, p->device->main, tensor);
}

/* FNV-1a, 64 bit: the number of a tensor's stream of random numbers. */
static uint64_t stream_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return hash;
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
		if (draw->tensor->init != WLB_INIT_ONES)
			wlb_philox_normals(draw->seed, draw->stream, first, count, values);
		for (int64_t i = 0; i < count; i++)
			wlb_dtype_store(draw->dtype, out_host, row * block->cols + done + i,
			                draw->tensor->init == WLB_INIT_ONES ? 1.0 : draw->std * values[i]);
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

int wlb_parameters_init(struct wlb_parameters *p, uint64_t seed, double init_std, struct wlb_error *error)
{
	enum wlb_dtype dtype = p->device->compute;
	double output_std = init_std / sqrt(2.0 * (double)p->shape.num_hidden_layers);
	if (wlb_dtype_check(dtype, error) < 0)
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
		p->device->ops->to_device(p->device, NULL, wlb_weight(p, i), host, bytes);
		free(host);
	}
	return p->device->ops->synchronize(p->device, error);
}
