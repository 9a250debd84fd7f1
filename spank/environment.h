/*
 * Reads and sets the environment of a job's processes in slurmstepd. Every variable is set twice: as WLB_X for
 * programs, and as SLURM_WLB_X because srun passes SLURM_* on even under --export=NONE.
 */
#ifndef SPANK_ENVIRONMENT_H
#define SPANK_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slurm/spank.h>

/* Sets WLB_`name` and SLURM_WLB_`name`. */
void wlb_environment_set(spank_t sp, const char *name, const char *value);
void wlb_environment_set_number(spank_t sp, const char *name, long value);

/* Sets WLB_X for every SLURM_WLB_X that is set. */
void wlb_environment_restore(spank_t sp);

/* The value of any variable, "" when it is not set or does not fit. */
void wlb_environment_get(spank_t sp, const char *name, char *value, size_t size);

#endif
