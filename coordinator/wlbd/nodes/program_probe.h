/*
 * Whether the program that listens at an address works: wlbd connects, ends its side of the connection, and waits until
 * the program closes the other. A connection alone proves nothing: the kernel of a node whose programs are all stopped
 * still accepts it.
 */
#ifndef COORDINATOR_WLBD_NODES_PROGRAM_PROBE_H
#define COORDINATOR_WLBD_NODES_PROGRAM_PROBE_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { WLBD_PROBE_MS = 1000 };

enum wlbd_probe_outcome {
	WLBD_PROBE_FAILED,   /* nothing answers: the host may be dead */
	WLBD_PROBE_REFUSED,  /* the kernel answers that no program listens, or that it has ended */
	WLBD_PROBE_ACCEPTED, /* the kernel answers, and the program did not */
	WLBD_PROBE_ANSWERED,
};

struct wlbd_program_probe;

/* Calls `done` once, from the event loop; WLBD_PROBE_ANSWERED where the program answered or closed within
 * WLBD_PROBE_MS. Returns NULL if out of memory or descriptors, which says nothing about the program; `done` is not
 * called then. */
struct wlbd_program_probe *
wlbd_program_probe_start(struct event_base *base, const struct sockaddr *address, socklen_t length,
                         void (*done)(void *context, enum wlbd_probe_outcome outcome, int64_t took_ms), void *context);

/* `done` will not be called. NULL is allowed. */
void wlbd_program_probe_cancel(struct wlbd_program_probe *probe);

#endif
