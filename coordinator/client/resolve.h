/* Names to addresses under a deadline: a dead name server must not hold anyone up. */
#ifndef COORDINATOR_CLIENT_RESOLVE_H
#define COORDINATOR_CLIENT_RESOLVE_H

#include <netdb.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* Stream addresses of host and port; freeaddrinfo() releases. Numeric hosts never wait. A question that the name
 * server leaves unanswered until the deadline is given up together with its few hundred bytes, which the C library
 * still writes to: that is bounded by how often a caller asks. */
int wlb_resolve(const char *host, const char *port, int64_t deadline_ms, struct addrinfo **addresses,
                struct wlb_error *error);

#endif
