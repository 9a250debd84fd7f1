/*
 * The calls of a communicator that run on its queue while the host goes on: which of them have ended, for the trace,
 * and how long the compute queue waited for them. Both are read from events on the device. Private to worker/comm.
 */
#ifndef WORKER_COMM_QUEUED_H
#define WORKER_COMM_QUEUED_H

#include "worker/comm/comm_trace.h"
#include "worker/comm/transport.h"

struct wlb_queued;

/* Adds itself to the sources of the trace. The caller owns all else, which must outlive it. NULL on failure. */
struct wlb_queued *wlb_queued_new(struct wlb_comm_trace *trace, struct wlb_device *device, struct wlb_queue *queue,
                                  const struct wlb_transport *transport, void *state, struct wlb_error *error);
void wlb_queued_free(struct wlb_queued *queued); /* NULL allowed */

/* A call was put on the queue just now. Where the host is far ahead of the device several calls are one event of the
 * trace: the last of them. */
void wlb_queued_add(struct wlb_queued *queued, const struct wlb_trace_event *event);

/* Makes the compute queue wait for `done`, and measures how long, as a wait of this part. A wait has events of its own
 * until it is measured: of part 0 by the next call after it has ended, of the others when they are taken. 65,536 waits
 * are kept at most; others, and those for which memory lacks, are not measured. */
void wlb_queued_await(struct wlb_queued *queued, struct wlb_event *done, enum wlb_comm_kind kind, int part);
/* Seconds that the compute queue waited, in all waits that have ended. */
struct wlb_comm_waits wlb_queued_waits(struct wlb_queued *queued);
/* The waits of one part since the last call for this part. */
struct wlb_comm_waits wlb_queued_take_waits(struct wlb_queued *queued, int part);

#endif
