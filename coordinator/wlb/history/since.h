/* Reads a time in the past as a user types it. */
#ifndef COORDINATOR_WLB_HISTORY_SINCE_H
#define COORDINATOR_WLB_HISTORY_SINCE_H

#include <time.h>

#include "libwlb/wlb.h"

/* Takes how long ago (90s, 45m, 12h, 3d), a local date (2026-11-20), a local date and time (2026-11-20T10:00 or
 * 2026-11-20T10:00:00, with a T or a space), or a time of the day (10:00), of the day before where it is after now.
 * Returns -1 with the text and the rule where it is none of these, no time of the calendar, not after 1970, or after
 * now. */
int wlb_since_parse(const char *text, time_t now, time_t *since, struct wlb_error *error);

#endif
