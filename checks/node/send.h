/* What the checks of a node have found, for the coordinator. */
#ifndef CHECKS_NODE_SEND_H
#define CHECKS_NODE_SEND_H

#include "checks/node/report.h"

/* Sends the report to the configured coordinator, within 10 s. Returns -1 with the reason where it has not stored it,
 * which says nothing of the node. */
int wlb_check_report_send(const struct wlb_check_report *report, struct wlb_error *error);

#endif
