/* Reads the steps of a run from the coordinator in pages, because a long run does not fit into one reply. */
#ifndef COORDINATOR_WLB_HISTORY_STEPS_H
#define COORDINATOR_WLB_HISTORY_STEPS_H

#include <jansson.h>
#include <stdint.h>

#include "libwlb/wlb.h"

enum { WLB_STEPS_POINTS_MAX = 2000 };

/* Which steps of a run. */
struct wlb_steps_choice {
	int64_t from, to; /* numbers of steps; to 0: to the last one */
	int64_t every;    /* above 1: of each so many steps, counted from step 0, the first that is recorded */
	int points;       /* not 0: only so many, evenly spaced over the run; the others are not read */
};

/* Called with each page, an array ordered by step, which it may change. A value other than 0 ends the reading. */
typedef int wlb_steps_page(json_t *steps, void *context);

/* Returns 0 if `page` was called with all pages, of which the last may be empty; -1 if a page could not be read or
 * `page` ended it: `error` names the reason. `choice` NULL: all steps. */
int wlb_steps_each_page(const char *run, const struct wlb_steps_choice *choice, wlb_steps_page *page, void *context,
                        struct wlb_error *error);

/* Returns at most `points` steps, evenly spaced over the run, which the caller decrefs; NULL with the reason otherwise.
 */
json_t *wlb_steps_sample(const char *run, int points, struct wlb_error *error);

#endif
