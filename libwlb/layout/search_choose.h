/* Chooses the best of the plans that were found, by simulation. */
#ifndef LIBWLB_LAYOUT_SEARCH_CHOOSE_H
#define LIBWLB_LAYOUT_SEARCH_CHOOSE_H

#include "libwlb/layout/search_state.h"

/* The result and the memory it points into. */
struct wlb_search_found {
	struct wlb_search_result result;
	struct wlb_candidate *ranked, *misfits;
	int32_t *places; /* rank_node, rank_gpu, idle_node, idle_gpu, each of `gpus` entries */
};

/* Simulates the plans of the search that can be the best and fills the result, whose memory the caller frees also after
 * an error. Returns -1 where no plan fits, or if out of memory. */
int wlb_search_choose(struct wlb_search *search, struct wlb_search_found *found, struct wlb_error *error);

#endif
