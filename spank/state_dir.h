/* The folder of the plugin's notes on running jobs, STATE_DIR: what slurmstepd notes, the job's epilog reads. */
#ifndef SPANK_STATE_DIR_H
#define SPANK_STATE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spank/args.h"

/* Opens the folder, which no other user may write; makes it first if so wished. Returns -1 if there is none. */
int wlb_state_dir_open(const struct wlb_spank_args *args, bool make);

/* Writes NODE.JOBID, the node being that of SLURMD_NODENAME, and `end`. Returns false if the node is not known, or the
 * name does not fit. */
bool wlb_state_dir_name(uint32_t job_id, const char *end, char *name, size_t size);

#endif
