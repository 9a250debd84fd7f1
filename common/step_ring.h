/*
 * A ring of the newest steps that a rank has ended, as a part of its area (rank_trace.h). One thread writes; readers in
 * other processes never make it wait, and must take what they read for a claim of the rank.
 */
#ifndef COMMON_STEP_RING_H
#define COMMON_STEP_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WLB_TRACE_STEPS = 64,
	WLB_TRACE_TRANSFERS = 16, /* of a step: communicators of the rank */
	WLB_TRACE_STEP_WORDS = 10 + 4 * WLB_TRACE_TRANSFERS,
};

/* The calls of one communicator in a step. */
struct wlb_trace_transfer {
	int group; /* number of the communicator in the area */
	uint64_t calls;
	uint64_t bytes;   /* of the local buffers */
	double blocked_s; /* in which the rank waited in the calls; of a call that was started before, from when it was
	                     awaited. The wait of the member that enters last is the transfer alone. */
};

/* A step that has ended. Lengths of time and work that are not known are negative. */
struct wlb_trace_step {
	int64_t step;
	double work;       /* predicted for the rank's passes, in any unit */
	double computed_s; /* in these passes, without communication */
	double loader_s,
		storage_s;       /* waiting for the loader, and the part of it in which the loader waited for files */
	double seconds, aside_s; /* from the end of the step before to the end of this one, and the part of it in
	                            checkpoints and evaluation */
	int has_loss, has_gradient_norm;
	double loss, gradient_norm; /* of the rank's own tokens and gradients; may be infinite or NaN */
	int transfer_count;
	struct wlb_trace_transfer transfers[WLB_TRACE_TRANSFERS];
};

/* Zeroed memory is an empty ring. */
struct wlb_step_ring {
	_Atomic uint64_t next; /* the number of the next step */
	struct {
		_Atomic uint64_t version; /* of step number n, which is in slot n % WLB_TRACE_STEPS: n + 1 */
		_Atomic uint64_t words[WLB_TRACE_STEP_WORDS];
	} slots[WLB_TRACE_STEPS];
};

void wlb_step_ring_add(struct wlb_step_ring *ring, const struct wlb_trace_step *step);

/* Copies up to `max` steps, the oldest first, beginning with number *next (0: the first of all); moves *next past these
 * steps and past steps that the ring has lost. A *next that the ring has not reached is of an earlier rank in this
 * memory: then it begins with the oldest. Returns how many. */
size_t wlb_step_ring_read(const struct wlb_step_ring *ring, uint64_t *next, struct wlb_trace_step *steps, size_t max);

#endif
