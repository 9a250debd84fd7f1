/*
 * What happens when the lease of this wlbd ends (database/lease.h): the process starts itself again and stands by, with
 * the same pid and arguments and nothing of its memory. What it had not sent by then is never sent: connections are
 * reset, with the bytes that still wait in them.
 *
 * A thread that may act is interrupted by a signal of its own at that moment. A process that was stopped for longer
 * (SIGSTOP, a suspended host) takes that signal before its next instruction, so that no thread acts first.
 */
#ifndef COORDINATOR_WLBD_LEASE_END_H
#define COORDINATOR_WLBD_LEASE_END_H

#include <stdint.h>

#include "libwlb/wlb.h"

/* Milliseconds of a clock that goes on while the host is suspended (CLOCK_BOOTTIME). */
int64_t wlbd_lease_clock_ms(void);

/* Called once, first in main: `argv` is that of main. */
void wlbd_lease_end_prepare(char **argv);

/* This wlbd acts until then, of wlbd_lease_clock_ms. Called by the thread of the event loop alone, which is watched
 * from the first call on. Returns -1 if the system has no timer for it. */
int wlbd_lease_end_set(int64_t until_ms, struct wlb_error *error);

/* Called by any other thread before it acts: from then on it is interrupted at the end of the lease. Starts the process
 * again if the lease is over. Does nothing where there is none. Returns -1 if the system has no timer for it. */
int wlbd_lease_end_watch(struct wlb_error *error);

/* From now on the end of the lease ends the process instead of starting it again: wlbd is stopping. */
void wlbd_lease_end_exits(void);

/* Starts the process again, as at the end of the lease. */
_Noreturn void wlbd_lease_end_now(void);

#endif
