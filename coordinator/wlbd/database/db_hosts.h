/*
 * Where the database is, as libpq takes it: lists with commas of hosts, addresses and ports.
 *
 * libpq looks up a host's name with a call that blocks, unless its address is given too. It then still checks the
 * server's certificate and reads .pgpass by the name.
 */
#ifndef COORDINATOR_WLBD_DATABASE_DB_HOSTS_H
#define COORDINATOR_WLBD_DATABASE_DB_HOSTS_H

#include <stdbool.h>

#include "libwlb/wlb.h"

enum {
	WLBD_DB_HOSTS_MAX = 32,
	WLBD_DB_ADDRESSES_MAX = 16, /* of a host; the rest is not tried */
};

/* Owned strings. NULL or "": not given. */
struct wlbd_db_hosts {
	char *host, *hostaddr, *port;
};

void wlbd_db_hosts_clear(struct wlbd_db_hosts *hosts); /* releases the strings */

/* Writes the hosts that libpq would use with this connection string, its service file and its environment; nothing is
 * looked up. Of an invalid string nothing is written: libpq says what is wrong with it when it is to connect. Returns
 * -1 if out of memory. */
int wlbd_db_hosts_read(const char *conninfo, struct wlbd_db_hosts *hosts, struct wlb_error *error);

/* Returns whether libpq would have to look up a name: false for addresses, paths of sockets, and lists that libpq
 * refuses since their lengths differ. Does not block. */
bool wlbd_db_hosts_have_name(const struct wlbd_db_hosts *hosts);

/* Blocks while names are looked up. Each host with a name becomes one entry for each of its addresses, in the order of
 * the resolver; one whose name cannot be resolved is omitted, as libpq goes on to the next. `resolved` is the
 * caller's to clear. Returns -1, with nothing to clear, if no entry is left (the error names the last host that could
 * not be resolved, and says why), if there are more than WLBD_DB_HOSTS_MAX hosts, or if out of memory. For lists for
 * which wlbd_db_hosts_have_name is true. */
int wlbd_db_hosts_resolve(const struct wlbd_db_hosts *hosts, struct wlbd_db_hosts *resolved, struct wlb_error *error);

#endif
