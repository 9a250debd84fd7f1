/* The role that reads the views and nothing else: sql/functions/reader.sql. */
#ifndef COORDINATOR_DB_READER_H
#define COORDINATOR_DB_READER_H

#include <stdio.h>

#include "libwlb/wlb.h"

/* Makes the role, or gives it its rights alone where it is there, and writes to `out` how to connect as it. Returns -1
 * on failure: then nothing was changed. */
int wlb_db_reader(const char *conninfo, const char *name, FILE *out, struct wlb_error *error);

#endif
