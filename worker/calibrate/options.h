/* The options of `wlb calibrate`. */
#ifndef WORKER_CALIBRATE_OPTIONS_H
#define WORKER_CALIBRATE_OPTIONS_H

#include <stdbool.h>

#include "common/options.h"

/* Texts point into argv; NULL where an option was not given. */
struct wlb_calibrate_options {
	const char *output;
	const char *name; /* of the machine; NULL: the type of the node */
	const char *base; /* the machine whose values stand where this job can measure none; NULL: that of the device */
	int device;       /* enum wlb_device_kind */
	int dtype;        /* enum wlb_dtype; WLB_DTYPE_AUTO until it is chosen */
	int transport;    /* enum wlb_transport_choice */
	int threads;      /* 0: this node's CPUs / its ranks */
	int head_dim;
	double seconds;   /* bound of the measurements together */
	double deviation; /* the factor between a rank and the median of all above which the rank is outvoted */
	bool quick;
	bool local; /* nothing is sent to the coordinator */
};

extern const struct wlb_option_table wlb_calibrate_option_table;

#endif
