/* Runs a check on each place of a node in a process of its own, and judges how these processes ended. */
#ifndef CHECKS_NODE_PLACE_CHILDREN_H
#define CHECKS_NODE_PLACE_CHILDREN_H

#include "checks/node/children.h"
#include "checks/node/place.h"
#include "checks/node/report.h"

/* As wlb_children_run, a child for each place; `takes_s` is how long the work takes on a healthy one after its device
 * is open. */
int wlb_place_children_run(struct wlb_children *children, const struct wlb_places *places, size_t result_bytes,
                           wlb_child_work *work, const void *context, double takes_s, struct wlb_error *error);

/* Returns 1 where all children are done, but those whose GPU other processes use. Where one crashed or hangs, or a GPU
 * refused, adds the failure to the report and returns 0; report->hangs where one hangs. Else, where a CPU's child
 * refused, which is for lack of memory or of a library, or was killed, or this program has no kernels for a GPU,
 * returns -1 with the reason. */
int wlb_place_children_judge(const struct wlb_children *children, const struct wlb_places *places, const char *check,
                             struct wlb_check_report *report, struct wlb_error *error);

/* Returns 1 where other processes use GPUs, and adds to the report that these were not checked; else 0. */
int wlb_place_children_in_use(const struct wlb_children *children, const struct wlb_places *places, const char *check,
                              struct wlb_check_report *report);

/* Returns 1 with the reason where CPUs together need more than half of the memory that is free: work that takes it
 * would have the kernel kill processes. */
int wlb_places_lack_memory(const struct wlb_places *places, double place_bytes, struct wlb_error *why);

/* Texts for messages: "2 CPUs", "2 of 8 CPUs" where the node has others that this process may not use; " (and 3
 * others)" of `wrong` places, of which the first is named already. */
struct wlb_short_text {
	char text[48];
};
struct wlb_short_text wlb_places_text(const struct wlb_places *places);
struct wlb_short_text wlb_others_text(int wrong);

#endif
