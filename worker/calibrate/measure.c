/* The measurements of a rank, one after the other. */
#include <stdlib.h>

#include "worker/calibrate/attention.h"
#include "worker/calibrate/calibration.h"
#include "worker/calibrate/links.h"
#include "worker/calibrate/products.h"
#include "worker/calibrate/rotary.h"
#include "worker/calibrate/streams.h"
#include "worker/calibrate/switches.h"

/* Shares of the time. */
static const double PRODUCTS = 0.45, ATTENTION = 0.3, STREAMS = 0.08, ROTARY = 0.02, LINKS = 0.15;

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

int wlb_calibration_measure(const struct wlb_launch *launch, struct wlb_device *device, struct wlb_comm *world,
                            const struct wlb_calibrate_options *options, struct wlb_calibration *calibration,
                            struct wlb_error *error)
{
	double limit_s = options->quick ? 0.1 * options->seconds : options->seconds;
	*calibration = (struct wlb_calibration){0};
	if (wlb_measure_products(device, world, PRODUCTS * limit_s, &calibration->gemm, error) < 0 ||
	    wlb_measure_attention(device, world, options->head_dim, ATTENTION * limit_s, &calibration->attention,
	                          error) < 0 ||
	    wlb_measure_streams(device, STREAMS * limit_s, &calibration->memory_bytes_per_s, &calibration->operation_s,
	                        error) < 0 ||
	    wlb_measure_rotary(device, options->head_dim, ROTARY * limit_s, &calibration->rotary_angle_s, error) < 0)
		return -1;
	return measure_links(launch, device, world, LINKS * limit_s, calibration, error);
}
