/* Verdicts of ranks and nodes that compute longer than their predicted work explains. Internal. */
#ifndef LIBVERDICT_COMPUTE_H
#define LIBVERDICT_COMPUTE_H

#include "libverdict/parts.h"

void verdict_compute_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot);
void verdict_compute_find(struct wlb_verdict_detector *detector);

#endif
