/* Repeats an operation in many short pieces, each with the time of the device and the elapsed time. */
#ifndef CHECKS_NODE_PIECES_H
#define CHECKS_NODE_PIECES_H

#include "kernels/ops.h"

/* Returns the seconds of the device for `count` operations; below 0 on failure. */
typedef double wlb_pieces_busy_s(struct wlb_device *device, void *context, int count, struct wlb_error *error);

struct wlb_pieces {
	double fast_s;    /* of one operation in the fast tenth of the pieces, by the device's clock */
	double fastest_s; /* of one operation in the fastest piece */
	double busy_s;    /* of all pieces, by that clock: on a CPU the processor time of the thread */
	double elapsed_s; /* of all pieces, pauses included that the operating system made in and between them */
};

/* Repeats for limit_s, of which the first part is not counted, since a processor that was idle is not yet at the speed
 * that it has under load. Returns -1 with the device's error, or where its clock does not advance. */
int wlb_pieces_measure(struct wlb_device *device, wlb_pieces_busy_s *busy_s, void *context, double limit_s,
                       struct wlb_pieces *pieces, struct wlb_error *error);

#endif
