/* The lines of a rank's file of spans, one after the other. */
#ifndef COORDINATOR_WLB_TRACE_RANK_FILE_H
#define COORDINATOR_WLB_TRACE_RANK_FILE_H

#include <limits.h>
#include <stdio.h>

#include "coordinator/wlb/trace/span_line.h"

struct wlb_rank_file {
	FILE *in;
	char path[PATH_MAX];
	int rank;
	int64_t number;            /* of the line */
	struct wlb_span_line line; /* that was read last */
	int world_track;           /* of the calls of all ranks; -1: it was not named */
};

/* Opens the file of a rank in the folder, and reads its first line, which names the rank. Returns -1 with the reason.
 */
int wlb_rank_file_open(struct wlb_rank_file *file, const char *folder, int rank, struct wlb_error *error);
void wlb_rank_file_close(struct wlb_rank_file *file);

/* Reads the next line into file->line. A last line without its end is passed over: the rank was killed. Returns 1, 0 at
 * the end, -1 with the reason. */
int wlb_rank_file_next(struct wlb_rank_file *file, struct wlb_error *error);

#endif
