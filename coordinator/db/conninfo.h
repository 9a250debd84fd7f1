/*
 * Connection strings of libpq, before anything connects with them. No part of one is in a message: where a string is
 * written wrongly, any part may be of a password.
 */
#ifndef COORDINATOR_DB_CONNINFO_H
#define COORDINATOR_DB_CONNINFO_H

#include <stdbool.h>
#include <stddef.h>

#include "libwlb/wlb.h"

/* Returns -1 with the rule where the string is neither KEY=VALUE pairs, nor a URI, nor the name of a database; and
 * where libpq would take a password, or a part of one, for a host, a port or a name, which messages have:
 * USER:P@SS@HOST, host=db,password=... */
int wlb_conninfo_check(const char *conninfo, struct wlb_error *error);

/* Returns whether a valid string has a password, or another value that libpq calls secret. */
bool wlb_conninfo_has_secret(const char *conninfo);

/* Writes the path of the file of passwords that a valid string names; "" where it names none. */
void wlb_conninfo_passfile(const char *conninfo, char *path, size_t size);

#endif
