/* sbatch, salloc and srun: options read, nothing submitted yet. */
#ifndef SPANK_SUBMIT_H
#define SPANK_SUBMIT_H

#include "spank/state.h"

int wlb_submit(const struct wlb_spank *plugin);

#endif
