/* What wlbd found about the ranks of an attempt from their timings: in words, in the log, and in PostgreSQL. */
#ifndef COORDINATOR_WLBD_VERDICTS_FOUND_VERDICTS_H
#define COORDINATOR_WLBD_VERDICTS_FOUND_VERDICTS_H

#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/detection/detection.h"

enum { WLBD_VERDICT_TEXT_SIZE = 256 };

/* Returns the one node that a verdict is about; NULL: it is about none, or several. The name is valid as long as the
 * attempt's nodes are unchanged. */
const char *wlbd_verdict_node(const struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found);

/* Writes what was found in a few words, such as "rank 3 on n2 hangs at step 12". */
void wlbd_verdict_text(const struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found,
                       char text[WLBD_VERDICT_TEXT_SIZE]);

/* Whether a verdict of that kind is of a run in which nothing moves. */
bool wlbd_verdict_stands_still(enum wlb_verdict_kind kind);

/* Returns what is done about a verdict of that kind once it is confirmed. */
enum wlb_fault_action wlbd_verdict_action(const struct wlbd_attempt *attempt, enum wlb_verdict_kind kind);

/* Gives the verdict, as it is now, to PostgreSQL and the log. Of the changes of an attempt's verdicts, 120 a minute are
 * stored. */
void wlbd_verdict_store(struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found, int64_t now_ms);

/* Stores the verdict as the fault for which wlbd ends the attempt. */
void wlbd_verdict_store_fault(struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found);

/* Returns the verdicts that are open, as GET /v1/runs/RUN/ranks has them; NULL if out of memory. */
json_t *wlbd_verdicts_json(const struct wlbd_attempt *attempt, int64_t now_ms);

#endif
