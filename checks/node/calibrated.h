/* The speeds that a machine file promises of a device. */
#ifndef CHECKS_NODE_CALIBRATED_H
#define CHECKS_NODE_CALIBRATED_H

#include "checks/node/options.h"
#include "kernels/ops.h"

/* A product of the file's grid, and the vectors of wlb_traffic, with their times on a device that all ranks of a node
 * use at the same time. */
struct wlb_calibrated {
	char name[64];
	int ranks;   /* of a node */
	int threads; /* of a rank; 0: the file does not say */
	int64_t rows, depth, columns;
	double product_s;
	double traffic_s;
};

/* Reads the machine file that the options, WLB_MACHINE or wlb.conf name. Returns 0; 1 where there is none, or where it
 * holds nothing that was measured of this element type, with the reason and the remedy in `why`; -1 where it cannot be
 * read. */
int wlb_calibrated_read(const struct wlb_check_options *options, struct wlb_calibrated *calibrated,
                        struct wlb_error *why);

#endif
