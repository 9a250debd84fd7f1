/* Verdicts of processes that are gone and of nodes that report no more. Internal. */
#ifndef LIBVERDICT_CRASH_H
#define LIBVERDICT_CRASH_H

#include "libverdict/parts.h"

/* Returns the number of ranks and nodes that are gone, also where the first of them is not known yet. */
int32_t verdict_crash_find(struct wlb_verdict_detector *detector);

#endif
