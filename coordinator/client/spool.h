/*
 * The spool: what one source of one attempt recorded, in a file, until the coordinator has it.
 *
 * `DIR/ATTEMPT_ID.SOURCE.jsonl`: line 0 says whose records these are, line n is record n of docs/api.md. A crash can
 * leave a torn last line: it is cut. A whole line that does not parse (a disk's doing) is delivered as an event
 * `spool_damaged` in its place, so that the sequence has no gap; a record that the coordinator refuses for good is
 * delivered as an event `record_refused`. What was cut, damaged or refused is kept in DIR/refused/ (refused.h). Whoever
 * has the file open holds its flock(); a spool in use is left alone by everybody else.
 *
 * One thread may append while another reads and acknowledges; nothing else is concurrent.
 */
#ifndef COORDINATOR_CLIENT_SPOOL_H
#define COORDINATOR_CLIENT_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/client/spool_header.h"
#include "libwlb/wlb.h"

struct wlb_spool;

/* Creates the spool in `dir` (made when missing), or continues it. NULL on error, also when another process has it. */
struct wlb_spool *wlb_spool_open(const char *dir, const struct wlb_spool_identity *identity, struct wlb_error *error);

/* Takes over a spool that an earlier process left. NULL with *busy set when it is in use, is gone, or is another
 * account's. One whose header cannot be read is moved into refused/. */
struct wlb_spool *wlb_spool_adopt(const char *path, bool *busy, struct wlb_error *error);

/* Closes; with `remove_delivered`, a spool without pending records is removed. NULL allowed. */
void wlb_spool_close(struct wlb_spool *spool, bool remove_delivered);

/* Appends a record with the time of now; `data` is a JSON object. On -1 the spool is as it was. */
int wlb_spool_append(struct wlb_spool *spool, const char *type, const char *data, struct wlb_error *error);

/* fdatasync, if something was appended since the last one. */
int wlb_spool_sync(struct wlb_spool *spool, struct wlb_error *error);

/* Records that are not acknowledged yet. */
int64_t wlb_spool_pending(struct wlb_spool *spool);
int64_t wlb_spool_acked(const struct wlb_spool *spool);

/* The body of the next POST .../records: the records behind the acknowledged ones, at most `max_records` and, unless
 * it is a single one, about 4 MiB. The caller frees it. NULL when none is pending, or on error (message set). */
char *wlb_spool_batch(struct wlb_spool *spool, int max_records, struct wlb_error *error);

/* The coordinator has committed everything up to `seq`: a smaller number than before goes back (it lost some), one
 * beyond the end counts as the end. */
int wlb_spool_acknowledge(struct wlb_spool *spool, int64_t seq, struct wlb_error *error);

/* The coordinator refuses the first pending record for good: keeps it in refused/, and has an event stand for it in the
 * next batch. -1: it stands for it already, too many were refused, or it cannot be kept; then nothing has changed. */
int wlb_spool_refuse(struct wlb_spool *spool, const char *why, struct wlb_error *error);

/* It refuses all of them: moves the pending records into refused/; nothing is pending then. Returns how many were
 * moved, -1 on error. */
int64_t wlb_spool_refuse_rest(struct wlb_spool *spool, const char *why, struct wlb_error *error);

const char *wlb_spool_path(const struct wlb_spool *spool);
const struct wlb_spool_identity *wlb_spool_whose(const struct wlb_spool *spool);

#endif
