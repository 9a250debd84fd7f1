/*
 * Records that the coordinator refuses permanently are kept beside the spools, in DIR/refused/, and are not sent again
 * unless a user requests it (`wlb flush --refused DIR`).
 *
 * `ATTEMPT_ID.SOURCE.jsonl` holds refused records, each with the coordinator's message in its member "refused".
 * `ATTEMPT_ID.SOURCE.N.damaged` holds the bytes of line N of a spool that are not a record. `notice` holds lines that
 * the next command prints for the user.
 *
 * Nothing is read or written where refused/ is a link or another account's: root's job may run in a folder of a user.
 */
#ifndef COORDINATOR_CLIENT_REFUSED_H
#define COORDINATOR_CLIENT_REFUSED_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/client/spool_header.h"

struct wlb_refused; /* one file of refused records, locked */

/* Opens the file that belongs to the spool at `spool_path`, and makes it if it is missing. NULL if it cannot be written
 * or another process has it open. */
struct wlb_refused *wlb_refused_open(const char *spool_path, const struct wlb_spool_identity *identity,
                                     struct wlb_error *error);

/* Appends a record, a line of the spool, unless the file has it already. On -1 nothing was added. */
int wlb_refused_add(struct wlb_refused *refused, const char *line, const char *why, struct wlb_error *error);

/* Syncs the file and its folder, and closes. */
int wlb_refused_close(struct wlb_refused *refused, struct wlb_error *error);

/* Keeps bytes of a spool that are not a record; `line` counts from 1. The bytes are added after those that are kept of
 * the line already. On -1 nothing has changed. */
int wlb_refused_keep_bytes(const char *spool_path, int64_t line, const char *bytes, size_t length,
                           struct wlb_error *error);

/* Adds a line to the notice that wlb_refused_take_notice returns. The notice has a bound: what exceeds it is
 * dropped. */
void wlb_refused_leave_notice(const char *spool_path, const char *line);

/* Removes the notice of the spool folder `dir` and returns its lines, which the caller frees; NULL if there are
 * none. */
char *wlb_refused_take_notice(const char *dir);

/* Turns a refused file of `dir` into a spool again, with numbers from `first_seq` on: the number after the last record
 * that the coordinator has of that source. A file that was numbered before keeps its numbers. Returns 1 if done, 0 if a
 * spool of that name is still being delivered, -1 on error. */
int wlb_refused_restore(const char *dir, const char *name, int64_t first_seq, struct wlb_error *error);

#endif
