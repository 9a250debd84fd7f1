#include "coordinator/wlb/program.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/show.h"
#include "coordinator/wlb/commands.h"

/* A separate program of this release: only its line of `wlb --help` is here. */
#define PROGRAM(called, line)                                                                                          \
	&(const struct wlb_command)                                                                                    \
	{                                                                                                              \
		.name = called, .summary = line                                                                        \
	}

static const struct wlb_command *const commands[] = {
	&wlb_command_run,
	&wlb_command_runs,
	&wlb_command_show,
	&wlb_command_steps,
	&wlb_command_compare,
	&wlb_command_query,
	&wlb_command_report,
	&wlb_command_faults,
	&wlb_command_logs,
	&wlb_command_nodes,
	&wlb_command_top,
	&wlb_command_set,
	&wlb_command_save,
	&wlb_command_tag,
	&wlb_command_note,
	&wlb_command_stacks,
	&wlb_command_trace,
	&wlb_command_flush,
	&wlb_command_db,
	&wlb_command_doctor,
	PROGRAM("open", "Show the page of a run in your browser while the run goes on"),
	PROGRAM("pack", "Pack documents into micro-batches of equal work"),
	PROGRAM("shard", "Split micro-batches over context-parallel ranks"),
	PROGRAM("plan", "Find the layout for a number of nodes"),
	PROGRAM("sim", "Simulate training steps and compare packing and sharding strategies"),
	PROGRAM("data", "Build datasets and show their contents: 'wlb data --help'"),
	PROGRAM("ckpt", "List, show, verify and remove checkpoints: 'wlb ckpt --help'"),
	PROGRAM("export", "Make a published model of a checkpoint: 'wlb export --help'"),
	PROGRAM("calibrate", "Measure the nodes of a job"),
	PROGRAM("check-links", "Check which nodes of a job reach each other"),
	PROGRAM("check-node", "Check whether a node is healthy"),
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static bool is_listed(const char *name)
{
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return true;
	return false;
}

/* Runs wlb-NAME from this program's folder, then from its libexec/wlb, then from PATH. */
static int run_external(char **argv)
{
	const char *name = argv[0];
	char self[PATH_MAX], beside[PATH_MAX + NAME_MAX], program[PATH_MAX + NAME_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[length > 0 ? length : 0] = '\0';
	const char *folder = dirname(self);
	snprintf(beside, sizeof(beside), "%s/wlb-%s", folder, name);
	execv(beside, argv);
	int failed = errno;
	snprintf(program, sizeof(program), "%s/../libexec/wlb/wlb-%s", folder, name);
	execv(program, argv);
	snprintf(program, sizeof(program), "wlb-%s", name);
	execvp(program, argv);
	if (!is_listed(name))
		return -1;
	wlb_show_line(stderr, "wlb: %s: %s; install it from the release of this wlb, " WLB_VERSION, beside,
	              strerror(failed));
	return WLB_EXIT_USAGE;
}

const struct wlb_program wlb_command_program = {
	.name = "wlb",
	.version = "wlb " WLB_VERSION,
	.about = "Trains language models on a Slurm cluster, records every step, and continues a run after a fault.",
	.notes = "'wlb NAME' runs the program wlb-NAME for any other name.\n"
		 "The coordinator is found through WLB_COORDINATOR=HOST:PORT[,HOST:PORT], or /etc/wlb/wlb.conf.",
	.commands = commands,
	.count = COMMANDS,
	.external = run_external,
};
