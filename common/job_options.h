/*
 * The options --wlb-... of a job, in one table. The plugin registers them with Slurm and checks what the user types;
 * `wlb run` reads them from the job's environment; wlbd checks and stores them as members of a run's `policy`. An
 * option more is a row more.
 */
#ifndef COMMON_JOB_OPTIONS_H
#define COMMON_JOB_OPTIONS_H

#include <stddef.h>

#include "libwlb/wlb.h"

enum wlb_job_option_id {
	WLB_JOB_LAYOUT,
	WLB_JOB_MODEL,
	WLB_JOB_SEQ_LENGTH,
	WLB_JOB_MIN_NODES,
	WLB_JOB_SPARES,
	WLB_JOB_ON_FAULT,
	WLB_JOB_GROW,
	WLB_JOB_OPTION_COUNT,
};

enum wlb_job_option_kind {
	WLB_JOB_NUMBER, /* whole, in [min, max]; in the environment and in a policy 0 is none */
	WLB_JOB_FILE,   /* a path */
	WLB_JOB_POLICY, /* what wlb_policy_parse reads */
	WLB_JOB_ITEMS,  /* what wlb_on_fault_parse reads */
};

struct wlb_job_option {
	const char *flag;     /* "--wlb-min-nodes" */
	const char *variable; /* that carries it into the job: "SLURM_WLB_MIN_NODES" */
	const char *key;      /* of its member in a policy */
	enum wlb_job_option_kind kind;
	const char *value; /* its name in Slurm's --help */
	const char *help;
	long min, max;             /* of a number */
	const char *example;       /* likewise */
	const char *default_value; /* where the option is given without one; NULL: it needs one */
};

extern const struct wlb_job_option wlb_job_options[WLB_JOB_OPTION_COUNT];

/* The variable without "SLURM_", which scripts and programs read: "WLB_MIN_NODES". */
const char *wlb_job_option_variable(const struct wlb_job_option *option);

/* Writes the value in its canonical form. Returns -1 with the value and the rule, without the option's name, where it
 * is none, or has no room in `size` bytes. */
int wlb_job_option_text(const struct wlb_job_option *option, const char *value, char *text, size_t size,
                        struct wlb_error *error);

#endif
