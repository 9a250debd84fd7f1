/*
 * Which calls of a communicator a rank reports with their times, so that those of all members can be put together: all
 * members choose calls of the same numbers without asking each other.
 *
 * Of 2^thin successive numbers about one is chosen: those of which the product with the golden ratio begins with `thin`
 * zero bits, which are spread evenly (Knuth, The Art of Computer Programming 3, 6.4). Those of a greater `thin` are
 * among those of a smaller one, so that members which have come to different ones still have calls in common.
 */
#ifndef COMMON_CALL_CHOICE_H
#define COMMON_CALL_CHOICE_H

#include <stdint.h>

enum { WLB_CALLS_CHOSEN_MOST = 8 }; /* of a communicator, in a window of time */

/* Begins as zeros. */
struct wlb_call_choice {
	int thin;
	int count;      /* chosen in this window */
	double began_s; /* when the window began */
};

/* Returns 1 where the call of this number, which has ended at now_s, is chosen. `thin` follows how often that is. */
int wlb_call_choice_has(struct wlb_call_choice *choice, uint64_t seq, double now_s, double window_s);

#endif
