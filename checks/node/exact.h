/* Whether a device computes products and operations on vectors bit for bit. */
#ifndef CHECKS_NODE_EXACT_H
#define CHECKS_NODE_EXACT_H

#include "checks/node/options.h"
#include "checks/node/place.h"
#include "checks/node/report.h"

/* Checks each of the places at the same time, for limit_s. Returns -1 with the reason where they could not be checked.
 */
int wlb_check_exact(const struct wlb_check_options *options, const struct wlb_places *places, double limit_s,
                    struct wlb_check_report *report, struct wlb_error *error);

#endif
