/* How the parameters of a rank come about. Private to worker/model. */
#ifndef WORKER_MODEL_PARTITION_H
#define WORKER_MODEL_PARTITION_H

#include "worker/model/parameter_table.h"

/* From shape, plan and place: the chunks, the rank's share of a layer, the table of tensors with their blocks. Without
 * buckets and offsets yet. -1: out of memory; what there is by then goes with the parameters. */
int wlb_parameters_list(struct wlb_parameters *parameters, const struct wlb_plan *plan,
                        const struct wlb_coordinates *at, struct wlb_error *error);

/* Puts all tensors of the table into buckets: offsets, owned, elements. */
int wlb_parameters_bucket(struct wlb_parameters *parameters, const struct wlb_layout *layout,
                          const struct wlb_coordinates *at, struct wlb_error *error);

#endif
