#include "coordinator/wlb/program.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "coordinator/wlb/commands.h"

/* Runs wlb-NAME from this program's folder, then from its libexec/wlb, then from PATH; returns only if there is
 * none. */
static void run_external(char **argv)
{
	const char *name = argv[0];
	char self[PATH_MAX], program[PATH_MAX + NAME_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length > 0) {
		self[length] = '\0';
		const char *folder = dirname(self);
		snprintf(program, sizeof(program), "%s/wlb-%s", folder, name);
		execv(program, argv);
		snprintf(program, sizeof(program), "%s/../libexec/wlb/wlb-%s", folder, name);
		execv(program, argv);
	}
	snprintf(program, sizeof(program), "wlb-%s", name);
	execvp(program, argv);
}

static const struct wlb_command data = {.name = "data",
                                        .summary = "Build datasets and show their contents: 'wlb data --help'"};

static const struct wlb_command calibrate = {.name = "calibrate", .summary = "Measure the nodes of a job"};

static const struct wlb_command check_links = {.name = "check-links",
                                               .summary = "Check which nodes of a job reach each other"};

static const struct wlb_command check_node = {.name = "check-node", .summary = "Check whether a node is healthy"};

static const struct wlb_command *const commands[] = {
	&wlb_command_run,    &wlb_command_runs, &wlb_command_show,   &wlb_command_faults, &wlb_command_nodes,
	&wlb_command_top,    &wlb_command_set,  &wlb_command_stacks, &wlb_command_flush,  &wlb_command_db,
	&wlb_command_doctor, &wlb_command_pack, &wlb_command_shard,  &wlb_command_plan,   &wlb_command_sim,
	&data,               &calibrate,        &check_links,        &check_node,
};

const struct wlb_program wlb_command_program = {
	.name = "wlb",
	.version = "wlb " WLB_VERSION,
	.about = "Trains language models on a Slurm cluster, records every step, and continues a run after a fault.",
	.notes = "'wlb NAME' runs the program wlb-NAME for any other name.\n"
		 "The coordinator is found through WLB_COORDINATOR=HOST:PORT, or /etc/wlb/wlb.conf.",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
	.external = run_external,
};
