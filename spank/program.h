/* The program of the tasks of a step. */
#ifndef SPANK_PROGRAM_H
#define SPANK_PROGRAM_H

#include <stdbool.h>

#include <slurm/spank.h>

/* Whether it is wlb-worker; not behind another program. */
bool wlb_program_is_worker(spank_t sp);

#endif
