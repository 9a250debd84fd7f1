/* Whether memory keeps what is written to it. */
#ifndef CHECKS_NODE_PATTERN_H
#define CHECKS_NODE_PATTERN_H

#include "checks/node/options.h"
#include "checks/node/place.h"
#include "checks/node/report.h"

/* Writes patterns to memory of each of the places at the same time and compares what is read, for limit_s, each byte
 * with one pattern and its complement at least. Returns -1 with the reason where that could not be done. */
int wlb_check_memory(const struct wlb_check_options *options, const struct wlb_places *places, double limit_s,
                     struct wlb_check_report *report, struct wlb_error *error);

#endif
