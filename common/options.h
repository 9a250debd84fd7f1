/* Describes the options and arguments of a command in one table, from which come the parsing of the command line,
 * --help, the synopsis and the list of options in the manual page, and the completion in the shell. */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "libwlb/wlb.h"

/* The type of the field that a row fills. Texts point into argv or into the table. */
enum wlb_option_kind {
	WLB_OPTION_FLAG,    /* bool; the option takes no value */
	WLB_OPTION_TEXT,    /* const char *, not empty; where the row has choices, one of them */
	WLB_OPTION_CHOICE,  /* int or enum, in the order of the choices: the index of the value among them */
	WLB_OPTION_INT,     /* int in [min, max] */
	WLB_OPTION_INT64,   /* int64_t in [min, max] */
	WLB_OPTION_REAL,    /* double in [min, max] */
	WLB_OPTION_LIST,    /* struct wlb_option_list: each time the option is given adds a text */
	WLB_OPTION_COMMAND, /* char **: the first argument and all words after it, NULL-terminated */
	WLB_OPTION_VERSION, /* no field and no value: --version of a program without subcommands */
};

struct wlb_option_list {
	char **texts; /* NULL-terminated; NULL where count is 0 */
	int count;
};

/* `max` where a whole number has no bound of its own. */
#define WLB_OPTION_UNBOUNDED 1e12

struct wlb_option {
	const char *name; /* without "--"; NULL: the row describes the arguments. At most one such row. */
	char letter;      /* of the short form, 'c' for "-c"; 0: there is none */
	enum wlb_option_kind kind;
	size_t offset; /* of the field in the values */
	bool required;
	bool open;           /* other values than the choices are taken too; the choices are for completion */
	double min, max;     /* INT, INT64, REAL */
	const char *rule;    /* "a number above 0"; NULL: made from min and max */
	const char *choices; /* "a|b|c" */
	int words;           /* LIST: that the option takes each time, if several; each is a text of its own */
	const char *initial; /* the value where none is given; NULL: the field stays zero */
	const char *value;   /* the value's name: "N"; "DIR" is completed with folders. NULL: the choices. */
	const char *help;
	const char *heading; /* of the group of options that begins with this row; NULL: none begins */
};

/* The members that every row has; the others follow by name: {WLB_OPTION(INT, "steps", FIELD(steps), "N", "how many"),
 * .max = 9}. */
#define WLB_OPTION(kind_, name_, offset_, value_, help_)                                                               \
	.name = (name_), .kind = WLB_OPTION_##kind_, .offset = (offset_), .value = (value_), .help = (help_)

struct wlb_option_table {
	const char *command; /* as it is called: "wlb pack" */
	const char *about;   /* what it does: after the usage line of --help */
	const char *notes;   /* after the options; may be NULL */
	const struct wlb_option *options;
	int count;
};

/* The action that the command line asks of the caller. */
enum wlb_options_asked {
	WLB_OPTIONS_READ,       /* run the command: the values are set */
	WLB_OPTIONS_HELP,       /* --help, -h: print it, then exit with 0 */
	WLB_OPTIONS_VERSION,    /* --version: print it, then exit with 0 */
	WLB_OPTIONS_SYNOPSIS,   /* --help=synopsis: the command's line in the manual page's SYNOPSIS, for the build */
	WLB_OPTIONS_MAN,        /* --help=man: the option list of the manual page, for the build */
	WLB_OPTIONS_COMPLETION, /* --help=completion: lines of the completion script, for the build */
};

/* Fills `values`, a zeroed struct to which the rows' offsets refer, from argv[1..]. Returns an enum wlb_options_asked;
 * -1 with a message that names the option, the value and the rule. Options and arguments may be mixed, except that a
 * WLB_OPTION_COMMAND ends the options. Call wlb_options_free() in any case. */
int wlb_options_parse(const struct wlb_option_table *table, int argc, char **argv, void *values,
                      struct wlb_error *error);
void wlb_options_free(const struct wlb_option_table *table, void *values);

/* Prints the text for `what`; nothing for WLB_OPTIONS_READ. */
void wlb_options_print(const struct wlb_option_table *table, enum wlb_options_asked what, FILE *out);

/* Prints the text with lines of at most 100 columns, indented by `indent` from the second on; ends the last line. */
void wlb_options_print_wrapped(const char *text, int indent, FILE *out);

#endif
