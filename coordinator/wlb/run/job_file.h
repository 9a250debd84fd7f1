/*
 * What one start of a job leaves for the next: a job that is requeued starts another `wlb run`. Each file is in the
 * spool directory and has one line, which begins with the submit time of the job that wrote it.
 */
#ifndef COORDINATOR_WLB_RUN_JOB_FILE_H
#define COORDINATOR_WLB_RUN_JOB_FILE_H

#include <stdbool.h>

#include "coordinator/wlb/run/state.h"
#include "libwlb/wlb.h"

enum { WLB_RUN_JOB_FILE_BYTES = 128 };

/* Reads what follows the submit time in the file `name`. Returns false where there is no such file, where it does not
 * begin with a number, or is that of another job of the same id; `text` is "" then. */
bool wlb_run_job_file_read(const struct wlb_run *run, const char *name, char text[WLB_RUN_JOB_FILE_BYTES]);
/* Replaces the file. Returns -1 with the reason. */
int wlb_run_job_file_write(const struct wlb_run *run, const char *name, const char *text, struct wlb_error *error);

#endif
