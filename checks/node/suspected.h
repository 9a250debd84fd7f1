/* Whether the coordinator suspects this node. */
#ifndef CHECKS_NODE_SUSPECTED_H
#define CHECKS_NODE_SUSPECTED_H

#include "libwlb/wlb.h"

/* Asks the configured coordinator. Returns 1 where a run lost the node, excluded it, or saw it fail a check, and root
 * or SlurmUser has not found it healthy since; 0 where not; -1 with the reason where the coordinator does not say. */
int wlb_check_suspected(struct wlb_error *error);

#endif
