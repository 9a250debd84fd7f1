/* The rate of causal attention by the numbers of queries and keys. */
#ifndef WORKER_CALIBRATE_ATTENTION_H
#define WORKER_CALIBRATE_ATTENTION_H

#include "libwlb/wlb.h"
#include "worker/comm/comm.h"

/* Collective over `world`: sets the axes of the grid, as long as `limit_s` of elapsed time for `rounds` measurements
 * allows the slowest rank. */
int wlb_choose_attention(struct wlb_device *device, struct wlb_comm *world, int head_dim, double limit_s, int rounds,
                         struct wlb_attention_rates *rates, struct wlb_error *error);

/* Measures the grid once, forward and backward. A point is one of several equal segments of a launch
 * (wlb_axis_segments). */
int wlb_measure_attention(struct wlb_device *device, int head_dim, double limit_s, struct wlb_attention_rates *rates,
                          struct wlb_error *error);

#endif
