/* Reads the steps of a run from the coordinator in pages, because a long run does not fit into one reply. */
#ifndef COORDINATOR_WLB_HISTORY_STEPS_H
#define COORDINATOR_WLB_HISTORY_STEPS_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Called with each page, an array ordered by step. A value other than 0 ends the reading. */
typedef int wlb_steps_page(const json_t *steps, void *context);

/* Returns 0 if `page` was called with all pages; -1 if a page could not be read or `page` ended it: `error` names
 * the reason. */
int wlb_steps_each_page(const char *run, wlb_steps_page *page, void *context, struct wlb_error *error);

/* Returns at most `points` steps, evenly spaced over the run, which the caller decrefs; NULL with the reason otherwise.
 */
json_t *wlb_steps_sample(const char *run, int points, struct wlb_error *error);

#endif
