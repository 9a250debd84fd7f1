/*
 * The file of WLB_STOP_FILE, in the spool directory, by which a trainer is asked to save and stop that expects no
 * signal: it calls wlb.should_stop() of the package in Python, or reads the file itself. The file is there and empty
 * while the attempt runs on, so that a network file system that remembers which files are missing shows the order at
 * once. Its rank 0 makes the file of that name and ".step" when it looks for the first time, and writes there the step
 * after which all ranks stop, once they are asked: each file has one writer.
 */
#ifndef COORDINATOR_WLB_RUN_STOP_STOP_FILE_H
#define COORDINATOR_WLB_RUN_STOP_STOP_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Writes the path for an attempt; "" where there is no spool directory, or the path is too long. */
void wlb_run_stop_file_path(const struct wlb_run_job *job, const char *attempt_id, char *path, size_t size);

/* Makes the file, empty. Returns -1 where it cannot: the attempt is not asked by it then. */
int wlb_run_stop_file_make(const struct wlb_run_job *job, const char *attempt_id, struct wlb_error *error);

/* Whether the trainer has looked at it. */
bool wlb_run_stop_file_is_read(const struct wlb_run_job *job, const char *attempt_id);

/* Asks by it. Returns -1 where it cannot. */
int wlb_run_stop_file_ask(const struct wlb_run_job *job, const char *attempt_id, struct wlb_error *error);

/* Removes both files. */
void wlb_run_stop_file_remove(const struct wlb_run_job *job, const char *attempt_id);

#endif
