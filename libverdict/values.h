/* Verdicts of ranks whose loss or gradient is not finite, or far off that of their peers. Internal. */
#ifndef LIBVERDICT_VALUES_H
#define LIBVERDICT_VALUES_H

#include "libverdict/parts.h"

void verdict_values_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot);
void verdict_values_find(struct wlb_verdict_detector *detector);

#endif
