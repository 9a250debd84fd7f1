/* Builds the parameters of a rank. Private to worker/model. */
#ifndef WORKER_MODEL_PARTITION_H
#define WORKER_MODEL_PARTITION_H

#include "worker/model/parameter_table.h"

/* Sets, from shape, plan and place, the chunks, the rank's share of a layer, and the table of tensors with their
 * blocks, but no buckets and offsets. Returns -1 if out of memory; wlb_parameters_free frees what was allocated until
 * then. */
int wlb_parameters_list(struct wlb_parameters *parameters, const struct wlb_plan *plan,
                        const struct wlb_coordinates *coords, struct wlb_error *error);

/* Puts all tensors of the table into buckets: offsets, owned, elements. */
int wlb_parameters_bucket(struct wlb_parameters *parameters, const struct wlb_plan *plan,
                          const struct wlb_coordinates *coords, struct wlb_error *error);

#endif
