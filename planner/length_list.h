/* Keeps document lengths in memory, and streams them in order. */
#ifndef PLANNER_LENGTH_LIST_H
#define PLANNER_LENGTH_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

#define WLB_LENGTH_MAX_TOKENS (INT64_C(1) << 40) /* of one document */
enum { WLB_LENGTHS_MOST = 100 * 1000 * 1000 };   /* documents of a list: 800 MB */

struct wlb_length_list {
	int64_t *tokens; /* of each document; owned */
	size_t count, capacity;
	int64_t total_tokens;
};

/* Appends one. Returns -1 for a length below 0 or above WLB_LENGTH_MAX_TOKENS, for more than WLB_LENGTHS_MOST lengths,
 * or if out of memory; the list is unchanged. */
int wlb_length_list_add(struct wlb_length_list *list, int64_t tokens, struct wlb_error *error);
/* Puts those from number `first` on in a seeded order: Fisher and Yates, with the numbers of a 64-bit linear
 * congruential generator (Knuth's MMIX). */
void wlb_length_list_shuffle(struct wlb_length_list *list, size_t first);
void wlb_length_list_free(struct wlb_length_list *list);

/* The documents of a list in order, for wlb_batches_init. */
struct wlb_length_stream {
	const struct wlb_length_list *list;
	size_t taken;
	bool repeat; /* the stream starts over at the end of the list */
};
bool wlb_length_stream_next(void *stream, int64_t *tokens);

#endif
