/*
 * Reads a line of the file that WLB_METRICS_FILE names: what a trainer, or anything it starts, says of its steps. The
 * format is WLB's own. A record is one line, a JSON object, appended by one write:
 *
 *     {"step": 12, "time": 1790000000.5, "loss": 2.25, "tokens": 4096, "eval/loss": 2.5}
 *     {"step": 12, "time": 1790000000.5, "checkpoint": "/scratch/run/step_12"}
 *     {"checkpoint": "/scratch/run/step_12", "save_s": 3.5, "stall_s": 0.5, "bytes": 9000000}
 *
 * Every field is optional. "rank" is the rank that writes, where several append to one file. "step" is the trainer's
 * own number; "step_of_attempt" is the hook's count, which starts anew with each attempt. "time" is in seconds since
 * 1970. Every other number is a value (value_name.h); true is 1 and false is 0, and NaN, Infinity and -Infinity, as
 * Python writes them, are numbers. Texts, lists and objects are left out and counted.
 *
 * The caller reads the file with tail.h and lines.h, where the job runs and as its user, and keeps the place with the
 * records. The package `wlb` of Python writes this file, and the hook a second one.
 */
#ifndef FOLLOW_METRICS_LINE_H
#define FOLLOW_METRICS_LINE_H

#include "follow/followed.h"
#include "libwlb/wlb.h"

enum { WLB_CHECKPOINT_PATH_SIZE = 4096 };

struct wlb_metrics_line {
	struct wlb_followed record;
	int rank;                                  /* -1: the line does not say */
	char checkpoint[WLB_CHECKPOINT_PATH_SIZE]; /* the path of a checkpoint that is complete; "": the line has none
	                                            */
};

/* Returns 1 with a record, 0 for an empty line, -1 for a line that is none; the message says why. The line, with a NUL
 * behind `length` bytes, is shorter than WLB_LINES_SIZE. */
int wlb_metrics_line_read(struct wlb_metrics_line *line, const char *text, size_t length, struct wlb_error *error);

#endif
