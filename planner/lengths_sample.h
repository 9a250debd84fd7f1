/* Samples document lengths from a Megatron-LM index of any size. */
#ifndef PLANNER_LENGTHS_SAMPLE_H
#define PLANNER_LENGTHS_SAMPLE_H

#include "libwlb/wlb.h"
#include "planner/length_list.h"

enum {
	WLB_SAMPLE_DOCUMENTS = 65536, /* at most */
	WLB_SAMPLE_BLOCKS = 256,      /* places of the index that are read; each is two reads */
};

/* Appends the lengths of up to WLB_SAMPLE_DOCUMENTS documents of the index file `path`: all of a small one, of a larger
 * one those of WLB_SAMPLE_BLOCKS blocks at equal distances; in a seeded order, since trainers shuffle. It reads at most
 * 1 MiB of lengths for each block, so that the time does not depend on the size of the index; of a document that has
 * more sequences than that, the first are counted. Returns -1 with the file, the value and the rule where the index
 * cannot be read or is damaged at these places. */
int wlb_length_list_sample_index(const char *path, struct wlb_length_list *list, struct wlb_error *error);

#endif
