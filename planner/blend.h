/* The datasets of Megatron-LM's --data-path, and the lengths of the documents of all of them together. */
#ifndef PLANNER_BLEND_H
#define PLANNER_BLEND_H

#include <stdbool.h>
#include <stddef.h>

#include "libwlb/wlb.h"
#include "planner/length_list.h"

struct wlb_blend_part {
	const char *prefix; /* of .idx and .bin; the caller's text */
	double weight;      /* share of the tokens, in any unit */
};

struct wlb_blend {
	struct wlb_blend_part *parts;
	size_t count;
	bool weighted; /* false: each part has the share of its size */
};

/* Reads the words up to the next option, as Megatron-LM does: "PREFIX ..." or "WEIGHT PREFIX ...". The blend starts
 * zeroed; free it in any case. Returns -1 if out of memory. */
int wlb_blend_parse(char *const *words, struct wlb_blend *blend, struct wlb_error *error);
void wlb_blend_free(struct wlb_blend *blend);

/* Returns the first prefix whose index this process cannot read; NULL where there is none. */
const char *wlb_blend_unreadable(const struct wlb_blend *blend);

/* Appends lengths of documents of all parts in a seeded order, so many of each part that its tokens have the part's
 * share; the documents of a small part repeat. Returns -1 with the file, the value and the rule where an index cannot
 * be read. */
int wlb_blend_sample(const struct wlb_blend *blend, struct wlb_length_list *list, struct wlb_error *error);

#endif
