/* The state of the plugin in a process that has it loaded. */
#ifndef SPANK_STATE_H
#define SPANK_STATE_H

#include <sys/types.h>

#include "spank/agent.h"
#include "spank/args.h"
#include "spank/options.h"

struct wlb_spank {
	struct wlb_spank_args args;
	struct wlb_spank_options options;
	struct wlb_spank_agent agent; /* in slurmstepd */
	pid_t stepd;                  /* slurmstepd, where it has loaded the plugin */
};

#endif
