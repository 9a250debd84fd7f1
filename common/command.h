/* Runs the main() of a program, with subcommands (`wlb`, `wlb-data`, `wlb-worker`) or without (`wlbd`, `wlb-agent`,
 * `wlb-calibrate`). */
#ifndef COMMON_COMMAND_H
#define COMMON_COMMAND_H

#include "common/options.h"

enum { WLB_EXIT_DONE = 0, WLB_EXIT_FAILED = 1, WLB_EXIT_USAGE = 2 };

struct wlb_command {
	const char *name;
	const char *summary;                    /* one line of `PROGRAM --help` */
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
	/* Runs argv[0] as a separate program. Returns only if there is no program of that name. May be NULL. */
	void (*external)(char **argv);
};

/* The program's main(): finds the command, reads its options, runs it, prints its error; also --help, `help COMMAND`
 * and --version. Returns the exit code, which is WLB_EXIT_FAILED where the standard output could not be written. */
int wlb_program_main(const struct wlb_program *program, int argc, char **argv);

/* The same for a program that is one command: its table has a row of WLB_OPTION_VERSION. */
int wlb_command_main(const struct wlb_command *command, int argc, char **argv);

#endif
