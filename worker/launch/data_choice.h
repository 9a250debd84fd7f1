/* The datasets of --data-path and --split, as Megatron-LM has them. */
#ifndef WORKER_LAUNCH_DATA_CHOICE_H
#define WORKER_LAUNCH_DATA_CHOICE_H

#include "common/options.h"
#include "planner/blend.h"
#include "worker/data/dataset.h"
#include "worker/data/split.h"

/* Not to be moved: the blend points into it. */
struct wlb_data_choice {
	struct wlb_blend blend;
	struct wlb_blend_part parts[WLB_DATASET_PARTS_MAX];
	struct wlb_dataset_source sources[WLB_DATASET_PARTS_MAX]; /* the same, for datasets */
	struct wlb_split split;                                   /* of each dataset */
};

/* Takes the words behind the last --data-path of a command line, "PREFIX ..." or "WEIGHT PREFIX ..." up to the next
 * option, and the text of --split; NULL: all documents are trained. `given` has the values of all --data-path and all
 * words that are no option's. Returns -1 where one of these does not follow a --data-path, where there are too many
 * datasets, or where the split is refused. The words stay the caller's. */
int wlb_data_choice_read(char *const *argv, const struct wlb_option_list *given, const char *split,
                         struct wlb_data_choice *choice, struct wlb_error *error);
/* Returns the documents of one part of the split; it points into `choice`. */
struct wlb_dataset_choice wlb_data_choice_of(const struct wlb_data_choice *choice, enum wlb_split_part part);

#endif
