/*
 * The last resort of an attempt that hangs while nobody is named: the stacks of all ranks are gathered, and a verdict
 * names the ranks whose stacks differ from the stacks of most ranks. It needs no report of what ranks do, and so serves
 * any trainer of which steps are recorded or reported.
 */
#ifndef COORDINATOR_WLBD_VERDICTS_OUTLIERS_H
#define COORDINATOR_WLBD_VERDICTS_OUTLIERS_H

#include <stdbool.h>
#include <stdint.h>

struct wlbd_attempt;
struct wlbd_outliers;
struct wlbd_found_verdict;

/* Call it each second, with whether a verdict of a hang is open. Returns the verdict that is open, or over since
 * this call; NULL: none. It lives until the next call. */
const struct wlbd_found_verdict *wlbd_outliers_judge(struct wlbd_attempt *attempt, bool is_named, int64_t now_ms);

/* The verdict that is open; NULL: none. `outliers` may be NULL. */
const struct wlbd_found_verdict *wlbd_outliers_open(const struct wlbd_outliers *outliers);

/* The attempt is over. */
void wlbd_outliers_forget(struct wlbd_attempt *attempt);

/* The record of a step has arrived, of the run's number or that of the attempt. A delivery that could not be stored is
 * repeated, which is no progress: only a step after the last one counts. */
void wlbd_outliers_note_step(struct wlbd_attempt *attempt, int64_t step, bool is_of_attempt);

#endif
