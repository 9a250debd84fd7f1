/*
 * Reads the files of lines that the ranks of an attempt, and what they start, append to: those of WLB_METRICS_FILE, and
 * that of WLB_HOOK_FILE (follow/metrics_line.h). Of the former each node has one of its own in the run's folder: a
 * network file system does not append for two.
 */
#ifndef COORDINATOR_WLB_RUN_FOLLOW_LINE_FILES_H
#define COORDINATOR_WLB_RUN_FOLLOW_LINE_FILES_H

#include <stdbool.h>

#include "coordinator/wlb/run/follow/merged_records.h"

enum { WLB_LINE_FILES_MOST = 64 }; /* of those that are there; the first that are found */

struct wlb_line_files;

struct wlb_line_counts {
	int64_t files_left_out; /* in the last search */
	int64_t long_lines;
	int64_t bad_lines;
	int64_t unread_bytes; /* at the end */
	char why[256];        /* of the first bad line, or file that cannot be read; "": there was none */
};

/* The files whose paths are `begin` and a node's number, ".jsonl". NULL if out of memory. The caller closes it. */
struct wlb_line_files *wlb_line_files_open(const char *begin, enum wlb_source source);
/* The same for one file alone. */
struct wlb_line_files *wlb_line_files_open_one(const char *path, enum wlb_source source);
void wlb_line_files_close(struct wlb_line_files *files); /* NULL allowed */

/* Reads what is new, `lines_most` lines at most. Returns whether there may be more. */
bool wlb_line_files_poll(struct wlb_line_files *files, struct wlb_merged_records *records, double now_s,
                         int64_t lines_most);

/* Whether something was read. */
bool wlb_line_files_have_bytes(const struct wlb_line_files *files);

struct wlb_line_counts wlb_line_files_counts(const struct wlb_line_files *files);

/* Removes the files, of which all that is worth it was read. */
void wlb_line_files_remove(struct wlb_line_files *files);

#endif
