#include "worker/calibrate/products.h"

#include <stdlib.h>

#include "common/seconds.h"
#include "worker/calibrate/filled_memory.h"
#include "worker/calibrate/stopwatch.h"

/* The product by which the length of the axes is chosen. */
enum { PROBE_ROWS = 512 };

/* Reals of the weights and of the results, at least: together more than a cache has. */
enum { COLD_REALS = 12 << 20 };

struct wlb_products {
	void *x, *weight, *y;
	int64_t rows, depth, columns;
	int64_t capacity;             /* reals of weight and of y */
	int64_t weight_at, result_at; /* where the next call's are */
};

/* Returns the place of a matrix of `count` reals after `at`, from which the next one begins. */
static void *advance(const struct wlb_device *device, const struct wlb_products *p, void *memory, int64_t count,
                     int64_t *cursor)
{
	enum { LINE = 64 }; /* reals, at least a cache line */
	int64_t begin = *cursor + count <= p->capacity ? *cursor : 0;
	*cursor = begin + (count + LINE - 1) / LINE * LINE;
	return (char *)memory + (size_t)begin * wlb_dtype_bytes(device->compute);
}

static void multiply(struct wlb_device *device, void *context)
{
	struct wlb_products *p = context;
	const struct wlb_weight weight = {advance(device, p, p->weight, p->columns * p->depth, &p->weight_at),
	                                  p->columns, p->depth};
	void *y = advance(device, p, p->y, p->rows * p->columns, &p->result_at);
	device->ops->linear(device, y, p->columns, p->x, p->depth, &weight, NULL, p->rows);
}

static int allocate(struct wlb_device *device, struct wlb_products *product, int64_t most, struct wlb_error *error)
{
	product->capacity = most * most > COLD_REALS ? most * most : COLD_REALS;
	product->x = wlb_alloc_filled(device, device->compute, most * most, error);
	product->weight =
		product->x != NULL ? wlb_alloc_filled(device, device->compute, product->capacity, error) : NULL;
	product->y =
		product->weight != NULL ? wlb_alloc_filled(device, device->compute, product->capacity, error) : NULL;
	return product->y != NULL ? 0 : -1;
}

static void release(struct wlb_device *device, struct wlb_products *product)
{
	device->ops->release(device, product->x);
	device->ops->release(device, product->weight);
	device->ops->release(device, product->y);
	*product = (struct wlb_products){0};
}

int wlb_warm_up(struct wlb_device *device, double seconds, struct wlb_error *error)
{
	struct wlb_products probe = {.rows = PROBE_ROWS, .depth = PROBE_ROWS, .columns = PROBE_ROWS};
	double until_s = wlb_now_s() + seconds;
	int rc = allocate(device, &probe, PROBE_ROWS, error);
	while (rc == 0 && wlb_now_s() < until_s) {
		multiply(device, &probe);
		rc = device->ops->synchronize(device, error);
	}
	release(device, &probe);
	return rc;
}

int wlb_probe_products(struct wlb_device *device, double *elapsed_s, double *flops, struct wlb_error *error)
{
	struct wlb_products probe = {.rows = PROBE_ROWS, .depth = PROBE_ROWS, .columns = PROBE_ROWS};
	int rc = allocate(device, &probe, PROBE_ROWS, error);
	if (rc == 0)
		rc = wlb_shortest(device, multiply, &probe, elapsed_s, error);
	release(device, &probe);
	*flops = 2.0 * PROBE_ROWS * PROBE_ROWS * PROBE_ROWS;
	return rc;
}

static int measure_all(struct wlb_device *device, struct wlb_products *product, double point_s,
                       struct wlb_gemm_rates *rates, struct wlb_error *error)
{
	double *rate = rates->flops_per_s;
	for (int32_t r = 0; r < rates->rows_count; r++)
		for (int32_t d = 0; d < rates->depth_count; d++)
			for (int32_t c = 0; c < rates->columns_count; c++) {
				double seconds, flops = 2.0 * rates->rows[r] * rates->depth[d] * rates->columns[c];
				product->rows = (int64_t)rates->rows[r];
				product->depth = (int64_t)rates->depth[d];
				product->columns = (int64_t)rates->columns[c];
				if (wlb_stopwatch(device, multiply, product, point_s, &seconds, error) < 0)
					return wlb_fail_in(error, "product of %g x %g x %g", rates->rows[r],
					                   rates->depth[d], rates->columns[c]);
				*rate++ = flops / seconds;
			}
	return 0;
}

int wlb_measure_products(struct wlb_device *device, double limit_s, struct wlb_gemm_rates *rates,
                         struct wlb_error *error)
{
	struct wlb_products product = {0};
	int points = rates->rows_count * rates->depth_count * rates->columns_count;
	int rc = allocate(device, &product, (int64_t)rates->depth[rates->depth_count - 1], error);
	if (rc == 0)
		rc = measure_all(device, &product, limit_s / points, rates, error);
	release(device, &product);
	return rc;
}

struct wlb_products *wlb_products_new(struct wlb_device *device, int64_t rows, int64_t depth, int64_t columns,
                                      struct wlb_error *error)
{
	int64_t most = rows > depth ? rows : depth;
	struct wlb_products *products = calloc(1, sizeof(*products));
	if (products == NULL) {
		wlb_fail(error, "out of memory for a product");
		return NULL;
	}
	*products = (struct wlb_products){.rows = rows, .depth = depth, .columns = columns};
	if (allocate(device, products, most > columns ? most : columns, error) == 0)
		return products;
	wlb_products_free(device, products);
	return NULL;
}

void wlb_products_free(struct wlb_device *device, struct wlb_products *products)
{
	if (products != NULL)
		release(device, products);
	free(products);
}

double wlb_products_busy_s(struct wlb_device *device, struct wlb_products *products, int count, struct wlb_error *error)
{
	return wlb_busy_s(device, multiply, products, count, error);
}
