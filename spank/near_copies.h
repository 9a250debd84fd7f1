/* Removes what wlb-worker has of a job in the memory of a node (--save-local), when the job is over. */
#ifndef SPANK_NEAR_COPIES_H
#define SPANK_NEAR_COPIES_H

#include <slurm/spank.h>

/* For the job's epilog: removes /dev/shm/wlb-JOB-NODE and, where that is a link, the folder of that name that it names.
 * A process of the job's user does it, so that a link can lead to nothing but what the user may remove. Waits for it
 * for 10 s; it goes on where it takes longer. */
void wlb_near_copies_remove(spank_t sp);

#endif
