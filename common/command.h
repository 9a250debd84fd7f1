/* Runs the main() of a program, with subcommands (`wlb`, `wlb-data`, `wlb-worker`) or without (`wlbd`, `wlb-agent`,
 * `wlb-calibrate`). */
#ifndef COMMON_COMMAND_H
#define COMMON_COMMAND_H

#include "common/options.h"

enum { WLB_EXIT_DONE = 0, WLB_EXIT_FAILED = 1, WLB_EXIT_USAGE = 2 };

struct wlb_command {
	const char *name;
	const char *summary; /* line of `PROGRAM --help`; not read of a program that is one command */
	const struct wlb_option_table *options; /* NULL: a separate program, run through `external` */
	size_t values_bytes;                    /* of the struct that the options fill */
	/* Runs the command with the values that the options set. Returns the exit code; unless it is WLB_EXIT_DONE, the
	 * caller prints *error. */
	int (*run)(void *values, struct wlb_error *error);
	/* Instead of run: reads the options itself, from argv[1] on. */
	int (*main)(int argc, char **argv);
};

struct wlb_program {
	const char *name;    /* as it is called: "wlb data" */
	const char *version; /* line of --version */
	const char *about;   /* what it does: after the usage line of --help */
	const char *notes;   /* after the commands; may be NULL */
	const struct wlb_command *const *commands;
	int count;
	/* Runs argv[0] as a separate program. Returns only where it cannot: -1 if that is no command, else the exit
	 * code, and has said why. May be NULL. */
	int (*external)(char **argv);
};

/* The program's main(): finds the command, reads its options, runs it, prints its error; also --help, `help COMMAND`
 * and --version. Returns the exit code, which is WLB_EXIT_FAILED where the standard output could not be written. */
int wlb_program_main(const struct wlb_program *program, int argc, char **argv);

/* The same for a program that is one command. Its table has a row of WLB_OPTION_VERSION if users start it by its own
 * name. */
int wlb_command_main(const struct wlb_command *command, int argc, char **argv);

#endif
