/* The widths of a layer's rows; internal. */
#ifndef LIBWLB_COST_LAYER_WIDTHS_H
#define LIBWLB_COST_LAYER_WIDTHS_H

#include "libwlb/cost/layer_cost.h"

/* Widths on one tensor-parallel rank. WLB_WIDTH_ATTENDED is that of attention's output; WLB_WIDTH_LATENT_QUERIES and
 * WLB_WIDTH_LATENT_KEYS are those of what latent attention makes of a row first, WLB_WIDTH_ROTATED of what it rotates
 * of all queries, WLB_WIDTH_QUERIES_INPUT and WLB_WIDTH_KEYS_INPUT of what it makes queries of, and of each head a key
 * and a value; WLB_WIDTH_ROUTED is that of a token's copies for its experts; WLB_WIDTH_MLP_INPUTS, WLB_WIDTH_MLPS and
 * WLB_WIDTH_GATES_AND_UPS are those of the inputs, the columns and what gate and up give of all MLPs of a token in the
 * mean layer. */
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
	WLB_WIDTH_ROTATED,
	WLB_WIDTH_KEYS_INPUT,
	WLB_WIDTH_HEADS_KEYS_VALUES,
	WLB_WIDTH_ROUTED,
	WLB_WIDTH_MLP_INPUTS,
	WLB_WIDTH_MLPS,
	WLB_WIDTH_GATES_AND_UPS
};

double wlb_layer_width(const struct wlb_layer_cost *cost, enum wlb_width width);

/* Returns how many MLPs have a token's row as their input in the mean layer, of those that `modules` recompute as a
 * whole. */
double wlb_layer_mlp_inputs(const struct wlb_model *model, unsigned modules);

/* Returns the matrices of an MLP that have its input as theirs. */
double wlb_layer_gate_and_up(const struct wlb_model *model);

#endif
