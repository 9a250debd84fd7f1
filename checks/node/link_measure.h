/* Measures links to other nodes. */
#ifndef CHECKS_NODE_LINK_MEASURE_H
#define CHECKS_NODE_LINK_MEASURE_H

#include "checks/node/options.h"
#include "checks/node/report.h"

/* Returns 0 where there is a token and each --peer is HOST:PORT; -1 with the value and the rule. */
int wlb_links_ready(const struct wlb_check_options *options, struct wlb_error *error);

/* Measures the link to each --peer, one after the other: the round trip, and the bytes a second of a connection in both
 * directions. A peer that cannot be reached, refuses connections for 5 s, or does not answer, fails. One whose name
 * cannot be found, or that is another version, does not accept or have the token, or miscounts, is not checked.
 * wlb_links_ready returned 0. Returns -1 with the reason of the first that was not checked, also where no process can
 * be started. */
int wlb_check_links(const struct wlb_check_options *options, struct wlb_check_report *report, struct wlb_error *error);

#endif
