/* The folder of the plugin's notes on running jobs, STATE_DIR: what slurmstepd notes, the job's epilog reads. */
#ifndef SPANK_STATE_DIR_H
#define SPANK_STATE_DIR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "spank/args.h"

/* Opens the folder, which no other user may write; makes it first if so wished. Returns -1 if there is none. */
int wlb_state_dir_open(const struct wlb_spank_args *args, bool make);

/* The end of the name of the note that has the slurmstepds of a job; "" is that of the folders of its records. */
#define WLB_STATE_STEPDS ".steps"

/* Opens the note of a job on this node, a file of the folder: NODE.JOBID, the node being that of SLURMD_NODENAME, and
 * `end`. O_CREAT in `flags` makes both. Returns -1 with errno. */
int wlb_state_note_open(const struct wlb_spank_args *args, uint32_t job_id, const char *end, int flags);

/* Opens the note for reading and removes it: the job is over, or starts again with another note. The caller closes it.
 * Returns NULL if there is none. */
FILE *wlb_state_note_take(const struct wlb_spank_args *args, uint32_t job_id, const char *end);

#endif
