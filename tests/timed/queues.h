/*
 * Queues and events of the timed device, on a machine whose messages do not make the host wait (its file has no
 * blocking_messages). An operation or a message that is queued has a begin and an end, which follow from those before
 * it on its queue and from the events that the queue waits for; the host goes on, and waits only where it waits for a
 * GPU.
 *
 * Messages carry no data: the ranks of a communicator tell each other when theirs can begin. A call begins when it can
 * on all ranks, after the call before it on the communicator, and takes the time of the machine file's links, also
 * where other calls use them meanwhile.
 */
#ifndef TESTS_TIMED_QUEUES_H
#define TESTS_TIMED_QUEUES_H

#include <stdint.h>

#include "kernels/ops.h"

struct wlb_timed_messages; /* of a rank in a communicator: nccl.c */

struct wlb_queue {
	double ready_s;                      /* what is queued now does not begin before; of CLOCK_MONOTONIC */
	int64_t calls;                       /* on the queue so far */
	struct wlb_timed_messages *messages; /* whose calls they are; NULL: the queue has none */
	/* Returns when call number `call` ends, from 1; -1 where that is not known yet. With `wait` 1, on the thread
	 * that calls MPI, the host waits until it is. */
	double (*call_end_s)(struct wlb_timed_messages *messages, int64_t call, int wait);
};

/* Adds an operation that takes takes_s to a queue that is not the compute queue. */
void wlb_timed_queue_add(struct wlb_queue *queue, double takes_s);

/* Replaces those operations of a timed device. */
void wlb_timed_queues_replace(struct wlb_ops *ops);

#endif
