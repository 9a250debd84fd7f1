/*
 * The job's time: the caller's clock without the time in which the job as a whole was suspended for a reason that is
 * not a fault. It is suspended while all processes are stopped (scontrol suspend) or one is reported to be in a
 * debugger, while no report arrives from anyone (then the reporters or the network to them do not respond, not the
 * ranks), and where the clock is set. Internal.
 */
#ifndef LIBVERDICT_JOB_TIME_H
#define LIBVERDICT_JOB_TIME_H

#include "libverdict/detector_state.h"

void verdict_time_advance(struct verdict_job_time *time, double now_s);

/* A report has arrived, at the time that was advanced to. */
void verdict_time_report(struct verdict_job_time *time);

#endif
