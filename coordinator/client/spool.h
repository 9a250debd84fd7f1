/*
 * The spool: a file of what one source of one attempt recorded, kept until the coordinator has it.
 *
 * `DIR/ATTEMPT_ID.SOURCE.jsonl`: line 0 states whose records follow, and line n is record n of docs/api.md. A file
 * whose line 0 states no owner of records is never changed. A crash can leave a torn last line, which is kept, and cut
 * off by the next writer. A whole line that does not parse (a disk error) is replaced by an event `spool_damaged` in
 * the delivery, so that the sequence has no gap; a record that the coordinator refuses permanently is replaced by an
 * event `record_refused`. What was cut off, damaged or refused is kept in DIR/refused/ (refused.h).
 *
 * A process that has the file open holds its flock(); no other process touches a spool in use. On some file systems
 * locks fail, or other hosts do not see them. So only the writer of a spool cuts it, and others remove it only where it
 * is known to have no writer any more (wlb_spool_has_ended).
 *
 * One thread may append while another reads and acknowledges; nothing else may run concurrently.
 */
#ifndef COORDINATOR_CLIENT_SPOOL_H
#define COORDINATOR_CLIENT_SPOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "coordinator/client/spool_header.h"
#include "libwlb/wlb.h"

struct wlb_spool;

/* Makes the spool in `dir` (made if missing), or continues it. NULL on error, also if another process has it open. */
struct wlb_spool *wlb_spool_open(const char *dir, const struct wlb_spool_identity *identity, struct wlb_error *error);

enum wlb_spool_adoption {
	WLB_SPOOL_ADOPTED,
	WLB_SPOOL_BUSY,    /* it is in use, is gone, or belongs to another account */
	WLB_SPOOL_FOREIGN, /* it does not begin with the header of a spool: it is left alone; the message says so */
	WLB_SPOOL_FAILED,  /* it cannot be opened or read now, and is unchanged; the message says why */
};

/* Takes over a spool that an earlier process left. NULL unless WLB_SPOOL_ADOPTED. */
struct wlb_spool *wlb_spool_adopt(const char *path, enum wlb_spool_adoption *adoption, struct wlb_error *error);

/* Whether an adopted spool has no writer any more: its last record is the attempt's end, or nobody has written to it
 * for WLB_SPOOL_IDLE_S. Returns 1 if so, -1 if it cannot be read. Where it returns 0, records from the first damaged
 * one on are not delivered with this spool: they may be complete later. */
enum { WLB_SPOOL_IDLE_S = 600 };
int wlb_spool_has_ended(struct wlb_spool *spool, struct wlb_error *error);

/* When somebody wrote to an adopted spool last, by the clock of its file system. */
time_t wlb_spool_written_s(const struct wlb_spool *spool);

/* Closes; with `remove_delivered`, a spool without pending records is removed, unless another process has added to it.
 * Returns whether it is removed. NULL allowed. */
bool wlb_spool_close(struct wlb_spool *spool, bool remove_delivered);

/* Appends a record with the current time; `data` is a JSON object. On -1 the spool is unchanged. */
int wlb_spool_append(struct wlb_spool *spool, const char *type, const char *data, struct wlb_error *error);
/* The same for what happened at an earlier time, in seconds since 1970. */
int wlb_spool_append_of(struct wlb_spool *spool, const char *type, const char *data, double time_s,
                        struct wlb_error *error);

/* fdatasync, if something was appended since the last one that succeeded; the first one also syncs the folder of a new
 * spool. */
int wlb_spool_sync(struct wlb_spool *spool, struct wlb_error *error);

/* For the writer, to be called every few seconds: sets the file's time at most once a minute, by which processes on
 * other hosts see that the spool has a writer. */
void wlb_spool_touch(struct wlb_spool *spool);

/* Records that are not acknowledged yet. */
int64_t wlb_spool_pending(struct wlb_spool *spool);
int64_t wlb_spool_acked(const struct wlb_spool *spool);

/* The body of the next POST .../records: the records after the acknowledged ones, at most `max_records` and, unless it
 * is a single one, about 4 MiB. The caller frees it. NULL if none is pending, or on error (message set). */
char *wlb_spool_batch(struct wlb_spool *spool, int max_records, struct wlb_error *error);

/* Notes that the coordinator has committed everything up to `seq`. A smaller number than before moves back (the
 * coordinator lost records); one beyond the end counts as the end. */
int wlb_spool_acknowledge(struct wlb_spool *spool, int64_t seq, struct wlb_error *error);

/* Notes that the coordinator refuses the first pending record permanently: keeps the record in refused/ and replaces it
 * by an event in the next batch. Returns 1 if an event replaces it already or too many were refused, so that all are to
 * be refused, -1 if it cannot be read or kept; then nothing has changed. */
int wlb_spool_refuse(struct wlb_spool *spool, const char *why, struct wlb_error *error);

/* Notes that the coordinator refuses all pending records: moves them into refused/; nothing is pending then. Returns
 * how many were moved, -1 on error. */
int64_t wlb_spool_refuse_rest(struct wlb_spool *spool, const char *why, struct wlb_error *error);

const char *wlb_spool_path(const struct wlb_spool *spool);
const struct wlb_spool_identity *wlb_spool_identity(const struct wlb_spool *spool);

#endif
