/* Verdicts of ranks that computed other bits than their peers, or than themselves. Internal. */
#ifndef LIBVERDICT_CORRUPTION_H
#define LIBVERDICT_CORRUPTION_H

#include "libverdict/parts.h"

void verdict_corruption_find(struct wlb_verdict_detector *detector);

#endif
