/* Whether something listens: one connection attempt, bounded, without blocking. */
#ifndef WLBD_PROBE_H
#define WLBD_PROBE_H

#include <event2/event.h>
#include <stdbool.h>
#include <sys/socket.h>

enum { WLBD_PROBE_MS = 1000 };

/* Calls `done` once: after the connection is made (true), refused, or not made within
 * WLBD_PROBE_MS (false). */
void wlbd_probe(struct event_base *base, const struct sockaddr *address, socklen_t length,
                void (*done)(void *context, bool alive), void *context);

#endif
