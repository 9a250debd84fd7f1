#include "coordinator/stacks/options.h"

#define FIELD(name) offsetof(struct wlb_stacks_options, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(LIST, NULL, FIELD(pids), "PID...",
                    "processes, at most 64; those that they started belong to them"),
         .required = true},
	{WLB_OPTION(REAL, "seconds", FIELD(seconds), "S",
                    "begin no thread after this time, and divide it equally among the processes"),
         .min = 0.1, .max = 60, .initial = "3"},
	{WLB_OPTION(VERSION, "version", 0, NULL, "print the version and exit")},
};

const struct wlb_option_table wlb_stacks_option_table = {
	.command = "wlb-stacks",
	.about = "Prints the stacks of all threads of processes, a line of JSON for each PID. A thread is stopped only "
		 "while its stack is copied; one that was stopped before stays stopped.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};
