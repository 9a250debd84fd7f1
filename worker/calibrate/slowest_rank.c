#include "worker/calibrate/slowest_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/calibrate/products.h"
#include "worker/calibrate/stopwatch.h"

/* About how long all ranks compute before the slowest is asked for: ranks wait for each other after each layer (tensor
 * and context parallelism), each micro-batch (pipeline) or each step. */
static const double TURN_S = 0.01;

struct wlb_middle_product wlb_middle_product(const struct wlb_gemm_rates *rates)
{
	int r = rates->rows_count / 2, d = rates->depth_count / 2, c = rates->columns_count / 2;
	return (struct wlb_middle_product){rates->rows[r], rates->depth[d], rates->columns[c],
	                                   rates->flops_per_s[(r * rates->depth_count + d) * rates->columns_count + c]};
}

double wlb_slowest(double *times_s, int ranks, double deviation)
{
	double median_s = wlb_median(times_s, ranks);
	int last = ranks - 1;
	while (last > 0 && times_s[last] > deviation * median_s)
		last--;
	return times_s[last];
}

/* All ranks compute `calls` products; sets *slowest_s to the seconds of the slowest. */
static int take_turn(struct wlb_device *device, struct wlb_comm *world, struct wlb_products *products, int calls,
                     double deviation, double *times_s, double *slowest_s, struct wlb_error *error)
{
	int ranks = wlb_comm_size(world);
	double own_s = wlb_products_busy_s(device, products, calls, error);
	memset(times_s, 0, (size_t)ranks * sizeof(*times_s));
	times_s[wlb_comm_rank(world)] = own_s;
	if (own_s < 0.0 || wlb_comm_all_reduce_double(world, times_s, (size_t)ranks, WLB_SUM, error) < 0)
		return -1;
	*slowest_s = wlb_slowest(times_s, ranks, deviation);
	return 0;
}

static int measure(struct wlb_device *device, struct wlb_comm *world, struct wlb_products *products, double limit_s,
                   double deviation, double *times_s, double *seconds, struct wlb_error *error)
{
	double first_s, sum_s = 0.0;
	if (take_turn(device, world, products, 1, deviation, times_s, &first_s, error) < 0 ||
	    take_turn(device, world, products, 1, deviation, times_s, &first_s, error) < 0)
		return -1;
	if (!(first_s > 0.0))
		return wlb_fail(error, "the clock of device %s does not advance", device->name);
	/* All ranks have the same slowest time, and so take as many turns. */
	int calls = (int)fmax(1.0, ceil(fmin(TURN_S, limit_s) / first_s));
	int turns = (int)fmax(1.0, limit_s / (calls * first_s));
	for (int turn = 0; turn < turns; turn++) {
		double slowest_s;
		if (take_turn(device, world, products, calls, deviation, times_s, &slowest_s, error) < 0)
			return -1;
		sum_s += slowest_s / calls;
	}
	*seconds = sum_s / turns;
	return 0;
}

int wlb_measure_slowest_rank(struct wlb_device *device, struct wlb_comm *world, double limit_s, double deviation,
                             const struct wlb_gemm_rates *rates, double *seconds, struct wlb_error *error)
{
	const struct wlb_middle_product middle = wlb_middle_product(rates);
	struct wlb_products *products =
		wlb_products_new(device, (int64_t)middle.rows, (int64_t)middle.depth, (int64_t)middle.columns, error);
	double *times_s = calloc((size_t)wlb_comm_size(world), sizeof(*times_s));
	int rc = products != NULL ? 0 : -1;
	if (rc == 0 && times_s == NULL)
		rc = wlb_fail(error, "out of memory for the times of all ranks");
	if (rc == 0)
		rc = measure(device, world, products, limit_s, deviation, times_s, seconds, error);
	free(times_s);
	wlb_products_free(device, products);
	return rc;
}
