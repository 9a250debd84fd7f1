/*
 * Ends a slurmstepd that does not end after its step.
 *
 * Defect of Slurm: slurmstepd waits without a bound for PMIx_server_finalize, in which libpmix 4.2.2 has a deadlock
 * where a step is ended while its ranks start. Slurm takes the step for over when the socket of slurmstepd is closed,
 * before that, so nobody else would end the process.
 * Releases: seen on 22.05. Later ones of 25.05, and those from 25.11 on, close the socket only afterwards: a job with
 * such a process stays COMPLETING there and has no epilog, so that this does nothing (by their source). Not ended as
 * of 26.05.
 *
 * Each slurmstepd of a numbered step notes itself, as root, in a file of the job's. The epilog of the job looks at
 * the noted processes and at no other. Slurm runs the epilog on a node once all steps of the job are over there, and
 * before the epilog has ended it starts no step of the job there, not even of a job that is requeued.
 */
#ifndef SPANK_WORKAROUNDS_STUCK_STEPD_H
#define SPANK_WORKAROUNDS_STUCK_STEPD_H

#include <stdint.h>
#include <stdio.h>

/* In slurmstepd, as root: appends this process to `note`, an open file. */
void wlb_stuck_stepd_note(uint32_t job_id, uint32_t step_id, int note);

/* In the job's epilog: waits until those in `note` have ended, for 10 s at most, ends those that are
 * stuck for 5 s, and logs each of them. Takes microseconds if none is there. */
void wlb_stuck_stepd_end(uint32_t job_id, FILE *note);

#endif
