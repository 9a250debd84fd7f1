/*
 * The files that hold what an attempt prints, as `wlb logs` opens them later: srun's --output and --error where it is
 * given them, else the files of this process, which srun's output goes to; where that is a pipe (`wlb run ... | tee`),
 * the job's, as Slurm knows them. A path may have what srun replaces in it: %j, %t and so on.
 */
#ifndef COORDINATOR_WLB_RUN_ATTEMPT_OUTPUT_FILES_H
#define COORDINATOR_WLB_RUN_ATTEMPT_OUTPUT_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "coordinator/wlb/run/state/state.h"

struct wlb_output_file {
	char path[PATH_MAX]; /* absolute; "": no file, or it is not known */
	int64_t offset;      /* bytes that it has when the attempt begins; -1: not known */
};

struct wlb_output_files {
	struct wlb_output_file out, error;
	bool is_labelled; /* srun writes the rank before each line */
};

/* Reads the options of srun among the words, and srun's variables. */
void wlb_run_output_files(const struct wlb_run *run, struct wlb_output_files *files);

/* Records them with the command that the attempt runs. */
void wlb_run_record_command(const struct wlb_run *run, const struct wlb_attempt *attempt,
                            struct wlb_reporter *reporter);

#endif
