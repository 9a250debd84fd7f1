/*
 * Ends a slurmstepd that does not end after its step: since libpmix 4.2.2 has a deadlock in PMIx_server_finalize, that
 * of a step which is ended while its ranks start may wait for a lock for ever. Slurm takes its step for over when its
 * socket is closed, before that, so nobody else would end it.
 *
 * Each slurmstepd of a numbered step notes itself, as root, in STATE_DIR/NODE.JOBID.steps. The epilog of the job looks
 * at those and at no other process: Slurm runs it on a node once all steps of the job are over there, and starts no
 * step of the job there, also none of a job that is requeued, before it has ended.
 */
#ifndef SPANK_STUCK_STEPD_H
#define SPANK_STUCK_STEPD_H

#include <slurm/spank.h>

#include "spank/args.h"

/* In slurmstepd, as root: notes this process. */
void wlb_stuck_stepd_note(spank_t sp, const struct wlb_spank_args *args);

/* In the job's epilog: waits until those that are noted have ended, for 10 s at most, ends those that are stuck for
 * 5 s, and logs each of them. Takes microseconds if none is there. */
void wlb_stuck_stepd_end(spank_t sp, const struct wlb_spank_args *args);

#endif
