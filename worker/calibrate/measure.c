/* The measurements of a rank, one after the other. */
#include <stddef.h>
#include <stdlib.h>

#include "worker/calibrate/attention.h"
#include "worker/calibrate/axis.h"
#include "worker/calibrate/calibration.h"
#include "worker/calibrate/links.h"
#include "worker/calibrate/products.h"
#include "worker/calibrate/rank_memory.h"
#include "worker/calibrate/slowest_rank.h"
#include "worker/calibrate/stopwatch.h"
#include "worker/calibrate/switches.h"

/* Shares of the time. */
static const double WARM_UP = 0.03, PRODUCTS = 0.33, ATTENTION = 0.33, ELEMENTWISE = 0.1, SLOWEST_RANK = 0.1,
		    LINKS = 0.11;

/* All operations are measured so many times, and the median is taken: a time in which the processor is slower, because
 * it was idle before or because of its neighbours, does not change some operations alone. */
enum { ROUNDS = 3 };

/* Rows are tokens. A micro-batch of packed documents has any number of them, which the blocks of a kernel do not
 * divide: so many fewer than a power of two. */
enum { UNEVEN_ROWS = 3 };

/* Of a point in a round: the run that is not measured and one that is. */
static const double RUNS = 2.0;

/* Collective over `world`: sets the axes of the grid, as long as `limit_s` of elapsed time for `rounds` measurements
 * allows the slowest rank. Depth and columns are powers of two, as widths of models are multiples of; rows, which are
 * tokens of packed documents, are not. */
static int choose_products(struct wlb_device *device, struct wlb_comm *world, double limit_s, int rounds,
                           struct wlb_gemm_rates *rates, struct wlb_error *error)
{
	double elapsed_s, flops;
	if (wlb_probe_products(device, &elapsed_s, &flops, error) < 0 ||
	    wlb_comm_all_reduce_double(world, &elapsed_s, 1, WLB_MAX, error) < 0)
		return -1;
	int most = wlb_axis_max(wlb_axis_product_flops, RUNS * rounds, flops / elapsed_s, limit_s);
	*rates = (struct wlb_gemm_rates){0};
	rates->rows_count = wlb_axis_fill(WLB_AXIS_SIDE_MIN, most, rates->rows);
	for (int i = 0; i < rates->rows_count; i++)
		rates->rows[i] -= UNEVEN_ROWS;
	rates->depth_count = wlb_axis_fill(WLB_AXIS_SIDE_MIN, most, rates->depth);
	rates->columns_count = wlb_axis_fill(WLB_AXIS_SIDE_MIN, most, rates->columns);
	return 0;
}

static int measure_links(const struct wlb_launch *launch, struct wlb_device *device, struct wlb_comm *world,
                         double limit_s, struct wlb_calibration *calibration, struct wlb_error *error)
{
	int *leaf_of = calloc((size_t)launch->node_count, sizeof(*leaf_of));
	int rc = leaf_of != NULL ? wlb_find_switches(launch, world, leaf_of, error)
	                         : wlb_fail(error, "out of memory for the switches of %d nodes", launch->node_count);
	const struct wlb_rank_map map = {launch->size, launch->node_of, launch->node_count, leaf_of};
	for (int kind = 0; rc >= 0 && kind < WLB_LINK_KINDS; kind++) {
		struct wlb_link_calls calls;
		rc = wlb_measure_link(device, world, &map, (enum wlb_link_kind)kind, limit_s / WLB_LINK_KINDS,
		                      &calibration->links[kind], &calls, error);
		if (kind == WLB_LINK_NODE)
			calibration->node_calls = calls;
	}
	free(leaf_of);
	return rc < 0 ? -1 : 0;
}

static int measure_round(struct wlb_device *device, const struct wlb_calibrate_options *options, double limit_s,
                         struct wlb_calibration *round, struct wlb_error *error)
{
	if (wlb_measure_products(device, PRODUCTS * limit_s, &round->gemm, error) < 0 ||
	    wlb_measure_attention(device, options->head_dim, ATTENTION * limit_s, &round->attention, error) < 0)
		return -1;
	return wlb_measure_elementwise(device, options->head_dim, ELEMENTWISE * limit_s, &round->elementwise, error);
}

/* The values of a calibration that are measured in each round, all of them doubles. */
#define VALUES(member)                                                                                                 \
	{                                                                                                              \
		offsetof(struct wlb_calibration, member), sizeof(((struct wlb_calibration *)0)->member)                \
	}

static const struct {
	size_t offset, bytes;
} values[] = {VALUES(gemm.flops_per_s), VALUES(attention.forward_flops_per_s), VALUES(attention.backward_flops_per_s),
              VALUES(elementwise)};

static void take_medians(const struct wlb_calibration *rounds, struct wlb_calibration *calibration)
{
	*calibration = rounds[0];
	calibration->slowest_product_s = 0.0;
	for (int r = 0; r < ROUNDS; r++)
		calibration->slowest_product_s += rounds[r].slowest_product_s / ROUNDS;
	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++)
		for (size_t offset = 0; offset < values[v].bytes; offset += sizeof(double)) {
			double of_rounds[ROUNDS];
			for (int r = 0; r < ROUNDS; r++)
				of_rounds[r] = *(const double *)((const char *)&rounds[r] + values[v].offset + offset);
			*(double *)((char *)calibration + values[v].offset + offset) = wlb_median(of_rounds, ROUNDS);
		}
}

static int measure_rounds(struct wlb_device *device, struct wlb_comm *world,
                          const struct wlb_calibrate_options *options, double limit_s, struct wlb_calibration *rounds,
                          struct wlb_error *error)
{
	if (wlb_warm_up(device, WARM_UP * limit_s, error) < 0 ||
	    choose_products(device, world, PRODUCTS * limit_s, ROUNDS, &rounds[0].gemm, error) < 0 ||
	    wlb_choose_attention(device, world, options->head_dim, ATTENTION * limit_s, ROUNDS, &rounds[0].attention,
	                         error) < 0)
		return -1;
	for (int r = 1; r < ROUNDS; r++)
		rounds[r] = rounds[0];
	for (int r = 0; r < ROUNDS; r++)
		if (measure_round(device, options, limit_s / ROUNDS, &rounds[r], error) < 0 ||
		    wlb_measure_slowest_rank(device, world, SLOWEST_RANK * limit_s / ROUNDS, options->deviation,
		                             &rounds[r].gemm, &rounds[r].slowest_product_s, error) < 0)
			return -1;
	return 0;
}

int wlb_calibration_measure(const struct wlb_launch *launch, struct wlb_device *device, struct wlb_comm *world,
                            const struct wlb_calibrate_options *options, struct wlb_calibration *calibration,
                            struct wlb_error *error)
{
	double limit_s = options->quick ? 0.1 * options->seconds : options->seconds;
	struct wlb_calibration *rounds = calloc(ROUNDS, sizeof(*rounds));
	int rc = rounds != NULL ? measure_rounds(device, world, options, limit_s, rounds, error)
	                        : wlb_fail(error, "out of memory for the measurements");
	if (rc == 0)
		take_medians(rounds, calibration);
	free(rounds);
	if (rc == 0)
		rc = wlb_rank_memory(launch, device, world, &calibration->rank_memory_bytes, error);
	return rc < 0 ? -1 : measure_links(launch, device, world, LINKS * limit_s, calibration, error);
}
