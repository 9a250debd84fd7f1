/*
 * The steps that an attempt had ended before this start of wlbd watches it, as PostgreSQL has them. Their length bounds
 * what is a healthy wait: after a restart of wlbd the waits that it saw before are forgotten.
 */
#ifndef COORDINATOR_WLBD_VERDICTS_PAST_STEPS_H
#define COORDINATOR_WLBD_VERDICTS_PAST_STEPS_H

#include "coordinator/wlbd/attempts/attempts.h"

/* Asks the database, once for each attempt, how long nine of ten of its newest 256 steps were at most; sets
 * known_step_s when it answers. */
void wlbd_past_steps_ask(struct wlbd_attempt *attempt);

#endif
