/*
 * Connection strings of libpq, before anything connects with them. No part of one is in a message: where a string is
 * written wrongly, any part may be of a password.
 */
#ifndef COORDINATOR_DB_CONNINFO_H
#define COORDINATOR_DB_CONNINFO_H

#include <stdbool.h>

#include "libwlb/wlb.h"

/* Returns -1 with the rule where libpq does not take the string for KEY=VALUE pairs, a URI or the name of a database;
 * and where a part of a URI's password, not written with %, would be taken for its host, port or database. */
int wlb_conninfo_check(const char *conninfo, struct wlb_error *error);

/* Returns whether a valid string has a password, or another value that libpq calls secret. */
bool wlb_conninfo_has_secret(const char *conninfo);

#endif
