/* wlb: the command of users and administrators. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/wlb/command.h"
#include "coordinator/wlb/delivery/pending.h"

static const struct wlb_command *const commands[] = {
	&wlb_command_run,    &wlb_command_runs, &wlb_command_show,  &wlb_command_flush, &wlb_command_db,
	&wlb_command_doctor, &wlb_command_pack, &wlb_command_shard, &wlb_command_plan,  &wlb_command_sim,
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const struct wlb_command *find_command(const char *name)
{
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static void print_help(void)
{
	puts("Usage: wlb COMMAND [OPTIONS]\n\n"
	     "Trains language models on a Slurm cluster, records every step, and brings a run back after a fault.\n\n"
	     "Commands:");
	for (int i = 0; i < COMMANDS; i++)
		printf("  %-8s %s\n", commands[i]->name, commands[i]->summary);
	puts("  data     Build and look at datasets: 'wlb data --help'\n\n"
	     "'wlb help COMMAND' explains one. 'wlb NAME' runs the program wlb-NAME for any other name.\n"
	     "The coordinator is found through WLB_COORDINATOR=HOST:PORT, or /etc/wlb/wlb.conf.");
}

/* wlb-NAME beside this program, then in its libexec/wlb, then in PATH; returns only when there is none. */
static void run_external(const char *name, char **argv)
{
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

static int run_unknown(const char *name, char **argv)
{
	if (name[0] == '-') {
		fprintf(stderr, "wlb: option '%s' is unknown; see 'wlb --help'\n", name);
		return WLB_EXIT_USAGE;
	}
	if (strlen(name) < NAME_MAX - 8 && strchr(name, '/') == NULL)
		run_external(name, argv);
	fprintf(stderr, "wlb: there is no command '%.60s'; see 'wlb --help'\n", name);
	return WLB_EXIT_USAGE;
}

static int help_about(const char *name)
{
	const struct wlb_command *command = find_command(name);
	if (command == NULL)
		return run_unknown(name, (char *[]){(char *)name, "--help", NULL});
	fputs(command->help, stdout);
	return WLB_EXIT_DONE;
}

/* What was printed may be worth nothing if it did not arrive (a full disk). */
static int finish(int code)
{
	if (fflush(stdout) == 0 || code != WLB_EXIT_DONE)
		return code;
	fprintf(stderr, "wlb: output could not be written: %s\n", strerror(errno));
	return WLB_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "wlb: a command is needed, such as 'wlb runs'; see 'wlb --help'\n");
		return WLB_EXIT_USAGE;
	}
	const char *name = argv[1];
	if (strcmp(name, "--version") == 0) {
		puts("wlb " WLB_VERSION);
		return finish(WLB_EXIT_DONE);
	}
	if (strcmp(name, "help") == 0 && argc > 2)
		return finish(help_about(argv[2]));
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		print_help();
		return finish(WLB_EXIT_DONE);
	}
	const struct wlb_command *command = find_command(name);
	if (command == NULL)
		return run_unknown(name, argv + 1);
	if (command->delivers)
		wlb_pending_deliver();
	return finish(command->main(command, argc - 1, argv + 1));
}
