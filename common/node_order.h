/*
 * The order in which ranks fill the nodes of a step, where it is not Slurm's order. `wlb run` sets it as a variable,
 * which the plugin and wlb-worker read, so that all three give a rank the same place. The variable holds the numbers of
 * the nodes in Slurm's order (SLURM_NODEID), as "0,2,1,3".
 *
 * Neither plugin nor wlb-worker can derive the order from Slurm: no item of SPANK names the ranks of other nodes, and a
 * user may override the distribution by --srun-args. Then tp and cp still stay together, and plugin and wlb-worker
 * still agree, though the ranks are numbered otherwise.
 */
#ifndef COMMON_NODE_ORDER_H
#define COMMON_NODE_ORDER_H

#include "libwlb/wlb.h"

/* srun passes on variables that begin with SLURM_ also with --export=NONE. */
#define WLB_NODE_ORDER "SLURM_WLB_NODE_ORDER"

/* Reads the order of `count` nodes, which the caller frees. Returns NULL where `text` is NULL, does not name each of
 * the numbers 0 to count - 1 once, or memory is exhausted: the order is then Slurm's. */
int *wlb_node_order_parse(const char *text, int count);

/* The reverse; the caller frees the result; NULL if out of memory. */
char *wlb_node_order_format(const int *order, int count);

#endif
