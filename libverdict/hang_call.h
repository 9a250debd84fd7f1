/* Verdicts of calls that all members have entered and that none, or not all, leave: hangs in communication. Internal. */
#ifndef LIBVERDICT_HANG_CALL_H
#define LIBVERDICT_HANG_CALL_H

#include "libverdict/parts.h"

/* verdict_waits_find must have run. */
void verdict_hang_call_find(struct wlb_verdict_detector *detector);

#endif
