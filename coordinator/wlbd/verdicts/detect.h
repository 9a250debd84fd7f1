/*
 * Looks for faulty ranks of an attempt each second, more often where a hang is suspected, stores what is found,
 * and ends the attempt where the run's settings say so. What is known of ranks comes from the user's own processes, so
 * it acts on that user's run alone.
 */
#ifndef COORDINATOR_WLBD_VERDICTS_DETECT_H
#define COORDINATOR_WLBD_VERDICTS_DETECT_H

#include "coordinator/wlbd/attempts/attempts.h"

/* Call it about each second, until the attempt has been freed. */
void wlbd_detect(struct wlbd_attempt *attempt, int64_t now_ms);

/* The same where a hang is suspected, so that it is confirmed soon after its bound; else does nothing. Call it as
 * often as shall be judged then. Judging takes a fifth of wlbd's time at most. */
void wlbd_detect_suspected(struct wlbd_attempt *attempt, int64_t now_ms);

#endif
