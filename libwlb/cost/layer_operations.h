/* The elementwise operations of a layer, which memory bounds; internal. */
#ifndef LIBWLB_COST_LAYER_OPERATIONS_H
#define LIBWLB_COST_LAYER_OPERATIONS_H

#include "libwlb/cost/layer_cost.h"

/* Seconds in which so many bytes are read or written. */
double wlb_layer_memory_s(const struct wlb_layer_cost *cost, double bytes);

/* Returns how many times the least memory traffic elementwise operations have. */
double wlb_layer_traffic(const struct wlb_layer_cost *cost);

/* Returns the seconds of calls of an operation on `elements` in all: in Megatron-LM of `traffic` reals for each, in
 * wlb-worker of `op`. */
double wlb_layer_operation_s(const struct wlb_layer_cost *cost, double calls, double elements, double traffic,
                             enum wlb_op op);

/* Seconds of all elementwise operations of the mean layer, of one norm, and of the sum after a layer's last product,
 * forward; `calls` is 1, or 0 for times without the fixed time of each call. */
struct wlb_seconds wlb_layer_streams_s(const struct wlb_layer_cost *cost, double tokens, double calls);
struct wlb_seconds wlb_layer_norm_s(const struct wlb_layer_cost *cost, double tokens);
double wlb_layer_sum_s(const struct wlb_layer_cost *cost, double tokens, double calls);

/* Forward, the elementwise operations that `modules` recompute. */
double wlb_layer_streams_again_s(const struct wlb_layer_cost *cost, double tokens, unsigned modules);

/* Returns the share of the layers that rotate queries and keys. */
double wlb_layer_rotary_share(const struct wlb_model *model);

#endif
