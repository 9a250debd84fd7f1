/* Verdicts of a rank outside communication for which the others wait, and of ranks that wait for each other. Internal.
 */
#ifndef LIBVERDICT_HANG_H
#define LIBVERDICT_HANG_H

#include "libverdict/parts.h"

/* verdict_waits_find must have run. */
void verdict_hang_find(struct wlb_verdict_detector *detector);

#endif
