/* Reads the kernels of attention in the file of a machine. */
#ifndef PLANNER_MACHINE_ATTENTION_H
#define PLANNER_MACHINE_ATTENTION_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Reads {"fa2": {"efficiency": ..., "backward_efficiency": ..., "tile_tokens": ..., "overhead_keys": ...,
 * "source": TEXT}, "sdpa": "fa2", ...}: a text names a kernel above it that has the same speed. NULL: there are none.
 */
int wlb_machine_attention_read(json_t *object, struct wlb_machine *machine, struct wlb_error *error);

#endif
