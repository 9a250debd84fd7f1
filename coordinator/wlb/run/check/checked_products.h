/* Whether the report of `wlb check-node` says that a node computes right. Pure. */
#ifndef COORDINATOR_WLB_RUN_CHECK_CHECKED_PRODUCTS_H
#define COORDINATOR_WLB_RUN_CHECK_CHECKED_PRODUCTS_H

#include <stddef.h>

#include <jansson.h>

/* Writes why the node's products were not checked, in a report without a failure; "" where they are exact. A node of
 * which nothing failed may still have GPUs on which processes that cannot end hold the memory. */
void wlb_run_unchecked_products(const json_t *report, char *why, size_t size);

#endif
