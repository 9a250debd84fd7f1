/*
 * What the times of a layer's parts have in common: the widths of its rows, and its elementwise operations; internal.
 */
#ifndef LIBWLB_COST_LAYER_PARTS_H
#define LIBWLB_COST_LAYER_PARTS_H

#include "libwlb/cost/layer.h"

/* Widths on one tensor-parallel rank. WLB_WIDTH_ATTENDED is that of attention's output; WLB_WIDTH_LATENT_QUERIES and
 * WLB_WIDTH_LATENT_KEYS are those of what latent attention makes of a row first, WLB_WIDTH_QUERIES_INPUT and
 * WLB_WIDTH_KEYS_INPUT of what it makes queries of, and of each head a key and a value; WLB_WIDTH_ROUTED is that of a
 * token's copies for its experts; WLB_WIDTH_MLP_INPUTS, WLB_WIDTH_MLPS and WLB_WIDTH_GATES_AND_UPS are those of the
 * inputs, the columns and what gate and up give of all MLPs of a token in the mean layer. */
enum wlb_width {
	WLB_WIDTH_HIDDEN,
	WLB_WIDTH_QUERIES,
	WLB_WIDTH_KEYS,
	WLB_WIDTH_KEYS_VALUES,
	WLB_WIDTH_QUERIES_KEYS,
	WLB_WIDTH_QUERIES_KEYS_VALUES,
	WLB_WIDTH_ATTENDED,
	WLB_WIDTH_LATENT_QUERIES,
	WLB_WIDTH_QUERIES_INPUT,
	WLB_WIDTH_LATENT_KEYS,
	WLB_WIDTH_KEYS_INPUT,
	WLB_WIDTH_HEADS_KEYS_VALUES,
	WLB_WIDTH_ROUTED,
	WLB_WIDTH_MLP_INPUTS,
	WLB_WIDTH_MLPS,
	WLB_WIDTH_GATES_AND_UPS
};

/* Returns 1 where the trainer is wlb-worker. */
static inline int wlb_layer_is_worker(const struct wlb_layer_cost *cost)
{
	return cost->options->trainer == WLB_COST_WORKER;
}

/* -- layer_widths.c -- */
double wlb_layer_width(const struct wlb_layer_cost *cost, enum wlb_width width);

/* Returns how many MLPs have a token's row as their input in the mean layer, of those that `modules` recompute as a
 * whole. */
double wlb_layer_mlp_inputs(const struct wlb_model *model, unsigned modules);

/* Returns the matrices of an MLP that have its input as theirs. */
double wlb_layer_gate_and_up(const struct wlb_model *model);

/* -- layer_operations.c -- */
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
