/* Resolves names under a deadline: a name server that does not answer must not delay a caller. */
#ifndef COORDINATOR_CLIENT_RESOLVE_H
#define COORDINATOR_CLIENT_RESOLVE_H

#include <netdb.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* Stream addresses of host and port; freeaddrinfo() releases them. Numeric hosts never wait. A query that the name
 * server does not answer until the deadline is abandoned together with its few hundred bytes, to which the C library
 * still writes; how often a caller resolves names bounds that memory. */
int wlb_resolve(const char *host, const char *port, int64_t deadline_ms, struct addrinfo **addresses,
                struct wlb_error *error);

#endif
