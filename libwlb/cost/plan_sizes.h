/* Sizes that the memory model and the simulator both derive from a plan; internal. The plan must have passed
 * wlb_plan_check. */
#ifndef LIBWLB_COST_PLAN_SIZES_H
#define LIBWLB_COST_PLAN_SIZES_H

#include "libwlb/wlb.h"

/* Layers of a chunk that the backward pass recomputes: some of their operations for WLB_RECOMPUTE_SELECTIVE, all
 * for WLB_RECOMPUTE_FULL. */
double wlb_plan_recomputed_layers(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage,
                                  int32_t chunk);

/* Experts that compute a token in the mean layer; 1 where there are none. */
double wlb_plan_token_experts(const struct wlb_model *model);

/* The columns of all MLPs that compute a token in the mean layer. */
double wlb_plan_mlp_columns(const struct wlb_model *model);

/* The modules (bits of enum wlb_recompute) that a set recomputes in a layer that is not recomputed as a whole: with
 * SELECTIVE, and with FULL in the other layers, those that the program recomputes then. */
unsigned wlb_plan_modules(enum wlb_recompute set, const struct wlb_cost_options *options);

/* Of the columns of wlb_plan_mlp_columns, those of the MLPs of which `modules` recompute something. */
double wlb_plan_mlp_columns_again(const struct wlb_model *model, unsigned modules);

/* Width of the keys (or the values) that one tensor-parallel rank holds. */
double wlb_plan_kv_width(const struct wlb_plan *plan, const struct wlb_model *model);

/* Parameters of a chunk on one tensor-parallel rank, including the embedding and the head in the chunks that have them.
 */
double wlb_plan_chunk_parameters(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage,
                                 int32_t chunk);

/* The same of all chunks of a stage. */
double wlb_plan_stage_parameters(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage);

/* Ranks that divide the experts, at least 1. */
int32_t wlb_plan_expert_ranks(const struct wlb_plan *plan);

/* Ranks that have parts of the documents of a micro-batch, and exchange keys and values, at least 1. */
int32_t wlb_plan_document_ranks(const struct wlb_plan *plan);

/* Of these parameters, those that only dp x cp / ep ranks hold: the experts, where ep is above 1. */
double wlb_plan_chunk_experts(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage, int32_t chunk);
double wlb_plan_stage_experts(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage);

/* What a rank has of parameters of which all ranks that hold the same ones have equal shares. */
double wlb_plan_shard(const struct wlb_plan *plan, double parameters, double experts);

/* Of a chunk's parameters and of a stage's, those of the matrices of layers, whose products can be in 8 bits. */
double wlb_plan_chunk_matrices(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage,
                               int32_t chunk);
double wlb_plan_stage_matrices(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage);

/* Returns the stage's chunk with the most layers. Where the embedding counts as a layer, its chunk has fewer. */
int32_t wlb_plan_largest_chunk(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage);

#endif
