/* Whether products and memory are as fast as the machine file says, and whether the processors are this program's
 * alone. */
#ifndef CHECKS_NODE_SPEED_H
#define CHECKS_NODE_SPEED_H

#include "checks/node/calibrated.h"
#include "checks/node/place.h"
#include "checks/node/report.h"

/* Measures all of the places at the same time, for limit_s, and compares them with the machine file. Returns -1 with
 * the reason where they could not be measured. */
int wlb_check_speed(const struct wlb_check_options *options, const struct wlb_places *places,
                    const struct wlb_calibrated *calibrated, double limit_s, struct wlb_check_report *report,
                    struct wlb_error *error);

#endif
