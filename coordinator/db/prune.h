/* Removes what is old from the database, in transactions of a bounded size, beside a wlbd that serves:
 * sql/functions/prune.sql. */
#ifndef COORDINATOR_DB_PRUNE_H
#define COORDINATOR_DB_PRUNE_H

#include <stdbool.h>
#include <stdio.h>

#include "libwlb/wlb.h"

/* Days since the end of a run; 0: that is not removed. */
struct wlb_prune {
	int runs_days;    /* whole runs */
	int details_days; /* what ranks said, steps that were done again, and single steps, which are rolled up */
	bool is_dry;      /* only counts */
};

/* Writes to `out` what was removed, also where it fails in between: then -1, and the next call goes on. */
int wlb_db_prune(const char *conninfo, const struct wlb_prune *prune, FILE *out, struct wlb_error *error);

#endif
