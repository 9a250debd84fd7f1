/*
 * Whether products and memory are as fast as the machine file says, and whether the processors are this program's
 * alone.
 *
 * Speeds are compared as they were measured: by the operations of worker/calibrate, at a point of its grid, on all
 * ranks of a node at the same time. The best repetitions count. On a shared host other guests take bandwidth, and time
 * of a core's sibling hardware thread, for seconds to a minute, but not in each repetition of a few milliseconds; a
 * part that is slow in each repetition is found. What is over a limit is measured again after 1, 3 and 9 s, on all
 * places at the same time, since a place alone would have the bandwidth of the others.
 *
 * A CPU quota lets short repetitions look fast and stops the process between them, so processor time is compared with
 * elapsed time as well (processor_share.h).
 */
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
