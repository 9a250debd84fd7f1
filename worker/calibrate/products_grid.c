#include "worker/calibrate/products_grid.h"

#include "worker/calibrate/axis.h"
#include "worker/calibrate/products.h"

/* Rows are tokens. A micro-batch of packed documents has any number of them, which the blocks of a kernel do not
 * divide: so many fewer than a power of two. */
enum { UNEVEN_ROWS = 3 };

/* Of a point in a round: the run that is not measured and one that is. */
static const double RUNS = 2.0;

int wlb_choose_products(struct wlb_device *device, struct wlb_comm *world, double limit_s, int rounds,
                        struct wlb_gemm_rates *rates, struct wlb_error *error)
{
	double elapsed_s, flops;
	if (wlb_probe_products(device, &elapsed_s, &flops, error) < 0 ||
	    wlb_comm_all_reduce_double(world, &elapsed_s, 1, WLB_MAX, error) < 0)
		return -1;
	int most = wlb_axis_most(wlb_axis_product_flops, RUNS * rounds, flops / elapsed_s, limit_s);
	*rates = (struct wlb_gemm_rates){0};
	rates->rows_count = wlb_axis(WLB_AXIS_LEAST_SIDE, most, rates->rows);
	for (int i = 0; i < rates->rows_count; i++)
		rates->rows[i] -= UNEVEN_ROWS;
	rates->depth_count = wlb_axis(WLB_AXIS_LEAST_SIDE, most, rates->depth);
	rates->columns_count = wlb_axis(WLB_AXIS_LEAST_SIDE, most, rates->columns);
	return 0;
}
