/* Megatron-LM's --split: how the sequences of a dataset are divided. */
#ifndef WORKER_DATA_SPLIT_H
#define WORKER_DATA_SPLIT_H

#include "libwlb/wlb.h"

enum wlb_split_part { WLB_SPLIT_TRAIN, WLB_SPLIT_VALID, WLB_SPLIT_TEST, WLB_SPLIT_PARTS };

/* Each part is the sequences [from, to) of a dataset, as fractions of it. */
struct wlb_split {
	double from[WLB_SPLIT_PARTS];
	double to[WLB_SPLIT_PARTS];
};

/* Reads up to three numbers of 0 or more with commas between them, "969,30,1", whose sum is 1 whole; those that are not
 * there are 0. Returns -1 where it is anything else, or where nothing is left to train. */
int wlb_split_parse(const char *text, struct wlb_split *split, struct wlb_error *error);

#endif
