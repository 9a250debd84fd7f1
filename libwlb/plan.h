/* What memory model and simulator both take from a plan; internal. The plan has passed wlb_plan_check. */
#ifndef WLB_PLAN_H
#define WLB_PLAN_H

#include "libwlb/wlb.h"

/* Layers of chunk `chunk` of a stage: what does not divide goes to the first chunks, the last has the head. */
int64_t wlb_plan_layers(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage, int32_t chunk);

/* Parameters of one layer's matrices, on all tensor-parallel ranks together. */
double wlb_plan_layer_matrices(const struct wlb_model *model);

/* Width of the keys (or the values) that one tensor-parallel rank holds. */
double wlb_plan_kv_width(const struct wlb_plan *plan, const struct wlb_model *model);

/* Parameters of a chunk on one tensor-parallel rank, embedding and head with the chunk that has them. */
double wlb_plan_chunk_parameters(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage,
                                 int32_t chunk);

/* Forward passes of chunks a stage does before its first backward pass follows a forward one. */
int64_t wlb_plan_warmup(const struct wlb_plan *plan, int32_t stage);

#endif
