/* Answers the node that measures the link to this one. */
#ifndef CHECKS_NODE_LINK_SERVE_H
#define CHECKS_NODE_LINK_SERVE_H

#include "checks/node/options.h"

/* Listens at the port of --serve for --seconds, and answers the first peer that has the token. Returns the exit code;
 * where it is not WLB_EXIT_DONE, with the reason. */
int wlb_link_serve(const struct wlb_check_options *options, struct wlb_error *error);

#endif
