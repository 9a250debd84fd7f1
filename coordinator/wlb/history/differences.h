/* Which settings of several runs differ. No I/O. */
#ifndef COORDINATOR_WLB_HISTORY_DIFFERENCES_H
#define COORDINATOR_WLB_HISTORY_DIFFERENCES_H

#include <jansson.h>

/* Returns [{"name":"policy.layout","values":[...]}, ...] of `settings`, an array with an object for each run: the
 * members that are not the same in all of them, in the order in which they are first named; those of objects inside by
 * "a.b". A run without the member has null. An array is one value. The caller decrefs it; NULL if out of memory. */
json_t *wlb_settings_that_differ(const json_t *settings);

#endif
