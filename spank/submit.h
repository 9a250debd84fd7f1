/* The plugin in sbatch, salloc and srun, after the options are read and before anything is submitted. */
#ifndef SPANK_SUBMIT_H
#define SPANK_SUBMIT_H

#include "spank/state.h"

int wlb_submit_options(const struct wlb_spank *plugin);

#endif
