/*
 * Ends a process that can no longer do so itself, because it waits in a collective or in a call on a file: when the
 * coordinator orders the attempt to end, when a collective lasts longer than --distributed-timeout-minutes, when NCCL
 * reports a failure, and when a file that the main thread reports (worker/data/file_progress.h) makes no progress for
 * --storage-timeout-minutes. Calls of NCCL that a GPU still runs are aborted first.
 */
#ifndef WORKER_RECORD_WATCHDOG_H
#define WORKER_RECORD_WATCHDOG_H

#include "libwlb/wlb.h"
#include "worker/comm/comm_trace.h"
#include "worker/launch/launch.h"
#include "worker/record/record.h"

enum { WLB_EXIT_ORDERED = 75 }; /* the coordinator ordered the end; the next attempt follows */

struct wlb_watchdog;

/* Starts the thread; until wlb_watchdog_watch_collectives it bounds the time that connecting the ranks takes. The file
 * calls of the calling thread are bounded from now on; the same thread must stop the watchdog. */
struct wlb_watchdog *wlb_watchdog_start(const struct wlb_launch *launch, double timeout_s, double storage_timeout_s,
                                        struct wlb_error *error);
/* From now on the watchdog obeys the orders that reach the recorder, and records the end there. */
void wlb_watchdog_record(struct wlb_watchdog *watchdog, struct wlb_recorder *recorder);
/* The ranks are connected: from now on each of their collectives is bounded. */
void wlb_watchdog_watch_collectives(struct wlb_watchdog *watchdog, struct wlb_comm_trace *trace);
/* The work is done: from now on only the time until the process ends is bounded, and neither trace nor recorder is
 * used. NULL allowed. */
void wlb_watchdog_watch_exit(struct wlb_watchdog *watchdog);
void wlb_watchdog_stop(struct wlb_watchdog *watchdog); /* NULL allowed */

#endif
