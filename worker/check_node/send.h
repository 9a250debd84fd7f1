/* What the checks of a node have found, for the coordinator. */
#ifndef WORKER_CHECK_NODE_SEND_H
#define WORKER_CHECK_NODE_SEND_H

#include "worker/check_node/report.h"

/* Sends the report to the configured coordinator. Prints why where it was not taken: it says nothing of the node. */
void wlb_check_report_send(const struct wlb_check_report *report);

#endif
