/* What is measured of a machine: by each rank, then the values on which the ranks agree. */
#ifndef WORKER_CALIBRATE_CALIBRATION_H
#define WORKER_CALIBRATE_CALIBRATION_H

#include "libwlb/wlb.h"
#include "worker/calibrate/elementwise.h"
#include "worker/calibrate/options.h"
#include "worker/calibrate/pairs.h"
#include "worker/comm/comm.h"
#include "worker/launch/launch.h"

struct wlb_calibration {
	struct wlb_gemm_rates gemm;
	struct wlb_attention_rates attention;
	struct wlb_elementwise elementwise;
	double rank_memory_bytes; /* the least of a rank (rank_memory.h) */
	double slowest_product_s; /* of the middle product (slowest_rank.h), the mean over turns and rounds */
	struct wlb_link_calls node_calls;
	struct wlb_link links[WLB_LINK_KINDS]; /* bytes_per_s 0: this job has no such link */
};

/* Collective over `world`: all ranks measure at the same time, as they compute at the same time in training. Returns -1
 * with the reason where this rank failed: the others are then to be ended. */
int wlb_calibration_measure(const struct wlb_launch *launch, struct wlb_device *device, struct wlb_comm *world,
                            const struct wlb_calibrate_options *options, struct wlb_calibration *calibration,
                            struct wlb_error *error);

/* Collective over `world`: replaces each value by the median over the ranks that are not outvoted (vote.h); rank 0
 * names the outvoted ranks on standard error. Returns 0; 1 on all ranks, with the reason, where too many ranks differ;
 * -1 where this rank failed. */
int wlb_calibration_agree(const struct wlb_launch *launch, struct wlb_comm *world, double deviation,
                          struct wlb_calibration *calibration, struct wlb_error *error);

#endif
