/*
 * Removes what a slurmstepd that was killed has left of Slurm's PMIx plugin.
 *
 * Defect of Slurm: its plugin accepts none of these files. A job that was requeued has a step of the same number again,
 * which fails with "launch failed" (pmixp_server.c, pmixp_client.c and pmixp_utils.c).
 * Releases: 22.05 to 26.05. Not ended as of 26.05.
 */
#ifndef SPANK_WORKAROUNDS_STALE_PMIX_H
#define SPANK_WORKAROUNDS_STALE_PMIX_H

#include <slurm/spank.h>

/* In slurmstepd, as root, before the PMIx plugin is set up: removes the files of this step's number. Does nothing, and
 * asks slurmctld for nothing, unless the socket is there and nobody listens on it. */
void wlb_stale_pmix_clear(spank_t sp);

#endif
