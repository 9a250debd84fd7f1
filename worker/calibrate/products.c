#include "worker/calibrate/products.h"

#include "common/seconds.h"
#include "worker/calibrate/axis.h"
#include "worker/calibrate/memory.h"
#include "worker/calibrate/stopwatch.h"

/* The product by which the length of the axes is chosen. */
enum { PROBE_ROWS = 512 };

/* Of a point: the run that is not measured and three that are. */
static const double RUNS = 4.0;

struct product {
	void *x, *weight, *y;
	int64_t rows, depth, columns;
};

static void multiply(struct wlb_device *device, void *context)
{
	const struct product *p = context;
	const struct wlb_weight weight = {p->weight, p->columns, p->depth};
	device->ops->linear(device, p->y, p->columns, p->x, p->depth, &weight, NULL, p->rows);
}

static int allocate(struct wlb_device *device, struct product *product, int64_t most, struct wlb_error *error)
{
	product->x = wlb_calibrate_alloc_reals(device, most * most, error);
	product->weight = product->x != NULL ? wlb_calibrate_alloc_reals(device, most * most, error) : NULL;
	product->y = product->weight != NULL ? wlb_calibrate_alloc_reals(device, most * most, error) : NULL;
	return product->y != NULL ? 0 : -1;
}

static void release(struct wlb_device *device, struct product *product)
{
	device->ops->release(device, product->x);
	device->ops->release(device, product->weight);
	device->ops->release(device, product->y);
	*product = (struct product){0};
}

/* Sets *most to the longest side of a matrix that all ranks have the time for. */
static int choose(struct wlb_device *device, struct wlb_comm *world, double limit_s, int *most, struct wlb_error *error)
{
	struct product probe = {.rows = PROBE_ROWS, .depth = PROBE_ROWS, .columns = PROBE_ROWS};
	double elapsed_s = 0.0, unused;
	int rc = allocate(device, &probe, PROBE_ROWS, error);
	if (rc == 0)
		rc = wlb_stopwatch(device, multiply, &probe, 0.0, &unused, error);
	if (rc == 0) {
		elapsed_s = wlb_now_s();
		multiply(device, &probe);
		rc = device->ops->synchronize(device, error);
		elapsed_s = wlb_now_s() - elapsed_s;
	}
	release(device, &probe);
	if (rc < 0 || wlb_comm_all_reduce_double(world, &elapsed_s, 1, WLB_MAX, error) < 0)
		return -1;
	double flops_per_s = 2.0 * PROBE_ROWS * PROBE_ROWS * PROBE_ROWS / elapsed_s;
	*most = wlb_axis_most(wlb_axis_product_flops, RUNS, flops_per_s, limit_s);
	return 0;
}

static int measure_all(struct wlb_device *device, struct product *product, double point_s, struct wlb_gemm_rates *rates,
                       struct wlb_error *error)
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

int wlb_measure_products(struct wlb_device *device, struct wlb_comm *world, double limit_s,
                         struct wlb_gemm_rates *rates, struct wlb_error *error)
{
	struct product product = {0};
	int most = 0;
	if (choose(device, world, limit_s, &most, error) < 0)
		return -1;
	*rates = (struct wlb_gemm_rates){0};
	rates->rows_count = wlb_axis(most, rates->rows);
	rates->depth_count = wlb_axis(most, rates->depth);
	rates->columns_count = wlb_axis(most, rates->columns);
	int points = rates->rows_count * rates->depth_count * rates->columns_count;
	int rc = allocate(device, &product, most, error);
	if (rc == 0)
		rc = measure_all(device, &product, limit_s / points, rates, error);
	release(device, &product);
	return rc;
}
