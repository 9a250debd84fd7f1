/*
 * Which calls of a communicator a rank reports with their times. All members choose calls of the same numbers, without
 * asking each other, so that the times of all members can be put together.
 *
 * Of 2^thin successive numbers about one is chosen: a number whose product with the golden ratio begins with `thin`
 * zero bits. Such numbers are spread evenly (Knuth, The Art of Computer Programming 3, 6.4). The numbers for a greater
 * `thin` are among the numbers for a smaller `thin`, so that members that have come to different `thin` still have
 * calls in common.
 */
#ifndef COMMON_CALL_CHOICE_H
#define COMMON_CALL_CHOICE_H

#include <stdint.h>

enum { WLB_CALLS_CHOSEN_MAX = 8 }; /* of a communicator, in a window of time */

/* Begins as zeros. */
struct wlb_call_choice {
	int thin;
	int count;      /* chosen in this window */
	double began_s; /* when the window began */
};

/* Returns 1 where the call of this number, which has ended at now_s, is chosen. `thin` follows how often that is. */
int wlb_call_choice_has(struct wlb_call_choice *choice, uint64_t seq, double now_s, double window_s);

#endif
