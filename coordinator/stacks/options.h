/* The options of wlb-stacks. */
#ifndef COORDINATOR_STACKS_OPTIONS_H
#define COORDINATOR_STACKS_OPTIONS_H

#include "common/options.h"

struct wlb_stacks_options {
	struct wlb_option_list pids;
	double seconds;
};

extern const struct wlb_option_table wlb_stacks_option_table;

#endif
