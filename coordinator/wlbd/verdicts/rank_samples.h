/*
 * Stores from time to time how late each rank of an attempt enters calls, and how much work was predicted for it: the
 * picture of an attempt over its time, which is in no other record. A sample that the database does not take is lost.
 */
#ifndef COORDINATOR_WLBD_VERDICTS_RANK_SAMPLES_H
#define COORDINATOR_WLBD_VERDICTS_RANK_SAMPLES_H

#include <stdint.h>

struct wlbd_attempt;

/* Call it each second while the ranks of the attempt are watched: a sample is stored every ten seconds, and of an
 * attempt of more than a quarter of an hour after each hundredth of its age, so that a month has 900. */
void wlbd_rank_samples_take(struct wlbd_attempt *attempt, int64_t now_ms);

#endif
