/*
 * Reads the steps that trainers print (follow/stdout_line.h) from the file that the output of `wlb run` goes to, which
 * srun's output goes to as well: in a batch job that of sbatch --output. Output never passes through this: a terminal
 * or a pipe is not read, and a reader that falls behind passes over what it has no time for.
 */
#ifndef COORDINATOR_WLB_RUN_FOLLOW_OUTPUT_FILE_H
#define COORDINATOR_WLB_RUN_FOLLOW_OUTPUT_FILE_H

#include "coordinator/wlb/run/follow/merged_records.h"
#include "libwlb/wlb.h"

struct wlb_output_file;

/* Opens the file that `fd` writes to, from its present end on; `step_pattern` is that of --step-pattern, or NULL.
 * *file is NULL where it is none that can be read. Returns -1 on error. The caller closes it. */
int wlb_output_file_open(struct wlb_output_file **file, int fd, const char *step_pattern, struct wlb_error *error);
void wlb_output_file_close(struct wlb_output_file *file); /* NULL allowed */

/* Reads what is new; `is_last`: the attempt has ended. `stream` is the number of the file among those that are read. */
void wlb_output_file_poll(struct wlb_output_file *file, struct wlb_merged_records *records, int stream, double now_s,
                          bool is_last);

int64_t wlb_output_file_passed_bytes(const struct wlb_output_file *file); /* that were not read */

#endif
