/* How much of the elapsed time the processors computed for this program, and who had the rest. */
#ifndef CHECKS_NODE_PROCESSOR_SHARE_H
#define CHECKS_NODE_PROCESSOR_SHARE_H

#include "checks/node/place.h"
#include "checks/node/report.h"

/* What the kernel counts, at the beginning of a measurement. */
struct wlb_processor_share;
struct wlb_processor_share *wlb_processor_share_begin(const struct wlb_places *places, struct wlb_error *error);
void wlb_processor_share_free(struct wlb_processor_share *share); /* NULL allowed */

/* Adds the finding: shares[i] is the processor time of place i by the elapsed time. Where it is below `least` the
 * reason says which it is: a CPU quota, other virtual machines, or other work on these CPUs. */
void wlb_processor_share_judge(const struct wlb_processor_share *before, const struct wlb_places *places,
                               const double *shares, double least, struct wlb_check_report *report);

#endif
