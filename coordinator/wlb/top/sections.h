/* Ranks in sections: a section is the ranks of a node, or of one group of tp, cp, pp or dp. */
#ifndef COORDINATOR_WLB_TOP_SECTIONS_H
#define COORDINATOR_WLB_TOP_SECTIONS_H

#include "coordinator/wlb/top/ranks.h"

enum wlb_top_by {
	WLB_TOP_BY_NODE,
	WLB_TOP_BY_TP,
	WLB_TOP_BY_CP,
	WLB_TOP_BY_PP,
	WLB_TOP_BY_DP,
};

enum { WLB_TOP_LABEL_SIZE = 64 };

struct wlb_top_section {
	char label[WLB_TOP_LABEL_SIZE]; /* the name of the node; "cp0 dp3", the coordinates that its ranks share */
	int first;                      /* an index into `members` */
	int count;
};

struct wlb_top_sections {
	struct wlb_top_section *list; /* [count] */
	int count;
	int *members; /* indexes into the list of ranks */
};

/* Returns -1 if out of memory. Without a layout, ranks are in sections of nodes. wlb_top_sections_free releases them.
 */
int wlb_top_sections_make(const struct wlb_top_ranks *ranks, enum wlb_top_by by, struct wlb_top_sections *sections);
void wlb_top_sections_free(struct wlb_top_sections *sections);

/* Returns the rank of the section that needs most attention. */
const struct wlb_top_rank *wlb_top_section_worst(const struct wlb_top_ranks *ranks,
                                                 const struct wlb_top_sections *sections, int section);

#endif
