/*
 * Removes what a slurmstepd that was killed has left of Slurm's PMIx plugin. The plugin accepts none of these files: a
 * step of the same number, which a job has that was requeued, would fail with "launch failed" (pmixp_server.c,
 * pmixp_client.c and pmixp_utils.c of Slurm 22.05 to 26.05).
 */
#ifndef SPANK_STALE_PMIX_H
#define SPANK_STALE_PMIX_H

#include <slurm/spank.h>

/* In slurmstepd, as root, before the PMIx plugin is set up: removes the files of this step's number. Does nothing, and
 * asks slurmctld for nothing, unless the socket is there and nobody listens on it. */
void wlb_stale_pmix_clear(spank_t sp);

#endif
