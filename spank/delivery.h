/*
 * Records that a job could not deliver while it ran are delivered after its end by a process outside of it, `wlb flush
 * --wait`, on the batch host and as the job's user.
 *
 * The folders of these records are noted, as root, in STATE_DIR/NODE.JOBID: a folder in each line, first the default
 * folder when the batch step starts, then the folders that steps name on the same host. Only root can access that file;
 * what is done as the user is done after all privileges were dropped.
 */
#ifndef SPANK_DELIVERY_H
#define SPANK_DELIVERY_H

#include <slurm/spank.h>

#include "spank/args.h"

/* slurmstepd, before it becomes the user: notes the step's spool folder. */
void wlb_delivery_note(spank_t sp, const struct wlb_spank_args *args);

/* Called in the epilog of a job: starts the process if there is something to deliver, and does not wait for it. */
void wlb_delivery_start(spank_t sp, const struct wlb_spank_args *args);

#endif
