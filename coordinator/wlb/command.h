/* A subcommand of wlb: one file each, listed in main.c. */
#ifndef COORDINATOR_WLB_COMMAND_H
#define COORDINATOR_WLB_COMMAND_H

#include <getopt.h>
#include <stdbool.h>

#include "libwlb/wlb.h"

enum { WLB_EXIT_DONE = 0, WLB_EXIT_FAILED = 1, WLB_EXIT_USAGE = 2 };

struct wlb_command {
	const char *name;
	const char *summary; /* a line of `wlb --help` */
	const char *help;    /* all of `wlb help NAME` */
	bool takes_command;  /* options end at the first argument: what follows is a command with options of its own */
	bool delivers;       /* has what waits of the user's other runs delivered beside it */
	/* argv[0] is the subcommand's name. Returns the exit code; has printed its one error itself. */
	int (*main)(const struct wlb_command *self, int argc, char **argv);
};

extern const struct wlb_command wlb_command_run;
extern const struct wlb_command wlb_command_runs;
extern const struct wlb_command wlb_command_show;
extern const struct wlb_command wlb_command_flush;
extern const struct wlb_command wlb_command_db;
extern const struct wlb_command wlb_command_doctor;
extern const struct wlb_command wlb_command_pack;
extern const struct wlb_command wlb_command_shard;
extern const struct wlb_command wlb_command_plan;
extern const struct wlb_command wlb_command_sim;

/* The next option as getopt_long() gives it, -1 behind the last one. For an option that is wrong the line is printed
 * already and WLB_OPTION_WRONG comes back: exit with WLB_EXIT_USAGE. --help is printed and comes as WLB_OPTION_HELP:
 * exit with WLB_EXIT_DONE. */
enum { WLB_OPTION_WRONG = '?', WLB_OPTION_HELP = 'h' };
int wlb_command_option(const struct wlb_command *self, int argc, char **argv, const struct option *options);

/* Prints "wlb NAME: message" to stderr and returns `code`. */
int wlb_command_fail(const struct wlb_command *self, int code, const char *message);

/* A whole number in [minimum, maximum] from an option's value. */
int wlb_command_number(const char *option, const char *text, long minimum, long maximum, int *number,
                       struct wlb_error *error);

/* The same for any number. */
int wlb_command_real(const char *option, const char *text, double minimum, double maximum, double *number,
                     struct wlb_error *error);

#endif
