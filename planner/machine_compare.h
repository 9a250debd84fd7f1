/* Compares the speeds of two machines. */
#ifndef PLANNER_MACHINE_COMPARE_H
#define PLANNER_MACHINE_COMPARE_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Returns {"matrix_products":[least, most], "attention":..., "memory":..., "node_link":..., "network_link":...,
 * "switch_link":...}, which the caller releases: how many times as fast as `before` the machine `now` is, the least and
 * the most over products of 64 to 4,096 rows, depth and columns, over attention of 64 to 4,096 tokens, over messages of
 * 4 KiB and 16 MiB. NULL if out of memory. */
json_t *wlb_machine_compare(const struct wlb_machine *now, const struct wlb_machine *before);

#endif
