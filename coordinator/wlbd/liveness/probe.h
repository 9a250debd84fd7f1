/*
 * Whether the program that listens at an address works: it is connected to, is told by the end of our side that
 * nothing will come, and closes the connection in its turn. A connection alone proves nothing: the kernel of a node
 * whose programs are all stopped still makes it.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_PROBE_H
#define COORDINATOR_WLBD_LIVENESS_PROBE_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { WLBD_PROBE_MS = 1000 };

struct wlbd_probe;

/* Calls `done` once, from the event loop: alive when the program answered or closed within WLBD_PROBE_MS. NULL if out
 * of memory or descriptors, which says nothing of the program; `done` is not called then. */
struct wlbd_probe *wlbd_probe_start(struct event_base *base, const struct sockaddr *address, socklen_t length,
                                    void (*done)(void *context, bool alive, int64_t took_ms), void *context);

/* `done` is not called any more. NULL is allowed. */
void wlbd_probe_cancel(struct wlbd_probe *probe);

#endif
