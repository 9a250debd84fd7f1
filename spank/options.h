/* The user's options, --wlb-..., as sbatch, salloc and srun take them. */
#ifndef SPANK_OPTIONS_H
#define SPANK_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h> /* spank.h needs it and does not include it */

#include <slurm/spank.h>

#include "common/job_options.h"

/* Checked values in a canonical form; "" if the option was not given. */
struct wlb_spank_options {
	char text[WLB_JOB_OPTION_COUNT][PATH_MAX];
};

/* Registers all options with the program that loads the plugin; `take` is then called for each one given, with its enum
 * wlb_job_option_id. */
void wlb_spank_options_register(spank_t sp, spank_opt_cb_f take);

/* Stores one value; the last one is used. Slurm passes NULL, "" or "(null)" where an option that needs no value was
 * given none. Returns -1 if it is unusable: the message holds value, rule and example. With `submitting` it also checks
 * the model's file, as the user. */
int wlb_spank_options_take(struct wlb_spank_options *options, enum wlb_job_option_id which, const char *value,
                           bool submitting, struct wlb_error *error);

/* Whether the job is to be a WLB run: --wlb-layout was given and is not off. */
bool wlb_spank_options_active(const struct wlb_spank_options *options);

/* Names an option that has no effect because --wlb-layout is missing; NULL when there is none. */
const char *wlb_spank_options_ineffective(const struct wlb_spank_options *options);

#endif
