/*
 * The options of launchers with one task a node, as their own parsers read them (Python's argparse): which have a value
 * and which have none, so that the first word that is none of them, the script, is found. A name is written with
 * hyphens here; in a command it may have underscores.
 *
 * From the parsers of torch.distributed.run and torch.distributed.launch (1.9 to 2.15), of accelerate launch (0.20 to
 * 1.15), of ft_launcher (nvidia-resiliency-ext 0.4.1 and 0.7.0) and of deepspeed (0.9 to 0.17). Pure, no I/O.
 */
#ifndef COORDINATOR_WLB_RUN_COMMAND_LAUNCHER_OPTIONS_H
#define COORDINATOR_WLB_RUN_COMMAND_LAUNCHER_OPTIONS_H

#include <stdbool.h>

struct wlb_launcher_syntax {
	const char *valued;  /* names of the options with a value, separated by blanks */
	const char *flags;   /* likewise, of those without */
	const char *letters; /* of one hyphen: "r=redirects m=module" */
	bool abbreviates;    /* the beginning of a name stands for it, where no other name begins so */
};

extern const struct wlb_launcher_syntax wlb_launcher_torchrun, wlb_launcher_ft, wlb_launcher_accelerate,
	wlb_launcher_deepspeed;

/* An option in a command. */
struct wlb_launcher_option {
	char name[64];     /* the whole name: "rdzv-endpoint" */
	const char *value; /* a part of the words; NULL: it has none */
	int words;         /* that it has in the command: 1, or 2 */
};

enum wlb_launcher_word {
	WLB_LAUNCHER_OPTION,
	WLB_LAUNCHER_SCRIPT,  /* the first word after the options, or "--" before it, or the NULL at the end */
	WLB_LAUNCHER_UNKNOWN, /* an option of which it is not known whether the next word is its value */
};

/* Reads the option that begins at words[0]; *option is set for WLB_LAUNCHER_OPTION alone. An option that is not in the
 * table is read where it can have one meaning only: its value follows '=', or no value can follow. */
enum wlb_launcher_word wlb_launcher_option_read(const struct wlb_launcher_syntax *syntax, char *const *words,
                                                struct wlb_launcher_option *option);

#endif
