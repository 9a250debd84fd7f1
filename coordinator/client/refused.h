/*
 * What the coordinator refuses for good is kept beside the spools, in DIR/refused/, and is not sent again unless
 * somebody asks for it (`wlb flush --refused DIR`).
 *
 * `ATTEMPT_ID.SOURCE.jsonl` holds refused records, each with the coordinator's message in its member "refused".
 * `ATTEMPT_ID.SOURCE.N.damaged` holds the bytes of line N of a spool that are not a record; `NAME.damaged` is a spool
 * whose header cannot be read. `notice` holds one line for the next command that can say it to the user.
 */
#ifndef COORDINATOR_CLIENT_REFUSED_H
#define COORDINATOR_CLIENT_REFUSED_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/client/spool_header.h"

struct wlb_refused; /* one file of refused records, locked */

/* Opens the file that belongs to the spool at `spool_path`, and makes it when it is missing. NULL: it cannot be
 * written, or another process has it. */
struct wlb_refused *wlb_refused_open(const char *spool_path, const struct wlb_spool_identity *whose,
                                     struct wlb_error *error);

/* Appends a record, a line of the spool, unless it is there already. -1: nothing was added. */
int wlb_refused_add(struct wlb_refused *refused, const char *line, const char *why, struct wlb_error *error);

/* Syncs and closes. */
int wlb_refused_close(struct wlb_refused *refused, struct wlb_error *error);

/* Keeps bytes of a spool that are not a record; `line` counts from 1, 0 is the header. Bytes of that line that are
 * there already stay. */
int wlb_refused_keep_bytes(const char *spool_path, int64_t line, const char *bytes, size_t length,
                           struct wlb_error *error);

/* Moves a spool whose header cannot be read; its path is free afterwards. */
int wlb_refused_keep_spool(const char *spool_path, struct wlb_error *error);

/* Leaves a line for wlb_refused_take_notice, beside lines that nobody has taken yet. The file has a bound: what is over
 * it is left out. */
void wlb_refused_leave_notice(const char *spool_path, const char *line);

/* The lines that wait in the spool folder `dir`, NULL when there are none. They are gone afterwards; the caller frees.
 */
char *wlb_refused_take_notice(const char *dir);

/* Makes a refused file of `dir` a spool again, with numbers from `first_seq` on, which must be the number behind the
 * last one the coordinator has of that source; a file that was numbered before keeps its numbers. 1: done; 0: a spool
 * of that name is still being delivered; -1 error. */
int wlb_refused_restore(const char *dir, const char *name, int64_t first_seq, struct wlb_error *error);

#endif
