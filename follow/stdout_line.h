/*
 * Reads the lines that trainers print of their steps (stdout_format.c has the table of them), or those that the pattern
 * of `--step-pattern` describes. Nothing is asked of the trainer.
 *
 * The caller has a copy of stdout and stderr of the ranks, in the order in which they were written: it feeds lines.h
 * with ends_at_return, since a progress bar ends in a carriage return, and gives each line to wlb_stdout_read. Output
 * must reach its file without waiting for this: read the file, not the pipe, and where the reader falls behind, skip to
 * the end and say so. An ordinary line takes 1 us, one of a step 30 us; with the worst pattern a line of
 * WLB_STDOUT_LINE_MOST bytes takes 50 ms.
 *
 * Hugging Face's Trainer prints no step with its values, but the bar that it draws again behind them has it. So such a
 * record is held until then; wlb_stdout_flush gives it without a step. A place that is kept for a restart is that of
 * wlb_stdout_held_at where there is one.
 */
#ifndef FOLLOW_STDOUT_LINE_H
#define FOLLOW_STDOUT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "follow/followed.h"
#include "libwlb/wlb.h"

enum { WLB_STDOUT_LINE_MOST = 8192 }; /* longer lines are no lines of a trainer */

struct wlb_stdout;

/* `step_pattern` (pattern.h) is NULL for the built-in formats. Its groups are named step, loss, tokens or as the value
 * is; without names the first is the step, the second the loss, the third the tokens. NULL on error, with the message.
 * The caller closes it. */
struct wlb_stdout *wlb_stdout_open(const char *step_pattern, struct wlb_error *error);
void wlb_stdout_close(struct wlb_stdout *reader); /* NULL allowed */

/* Reads a line that begins at byte `at` of the stream. Returns whether there is a record, which may be that of an
 * earlier line. */
bool wlb_stdout_read(struct wlb_stdout *reader, const char *line, size_t length, int64_t at,
                     struct wlb_followed *record);

/* Gives the record that is held. For the end of the attempt, and for when nothing was printed for 2 s. */
bool wlb_stdout_flush(struct wlb_stdout *reader, struct wlb_followed *record);

/* Where the line of the held record begins; -1: none is held. */
int64_t wlb_stdout_held_at(const struct wlb_stdout *reader);

#endif
