/* The memory that a rank of wlb-worker allocates on its device; internal. */
#ifndef LIBWLB_COST_WORKER_MEMORY_H
#define LIBWLB_COST_WORKER_MEMORY_H

#include "libwlb/wlb.h"

/* Peak bytes of a rank of one stage, without the sums and what a rank does not allocate itself. `element_bytes` is the size of the type in which it
 * computes, `gradient_bytes` that of its gradients; `tokens` are those of the largest micro-batch. The plan must have
 * passed wlb_plan_check. The test train_predicted_memory compares it with what wlb-worker allocates. */
struct wlb_memory wlb_worker_memory(const struct wlb_plan *plan, const struct wlb_model *model, double element_bytes,
                                    double gradient_bytes, int32_t stage, int64_t tokens);

#endif
