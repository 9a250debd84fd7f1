#include "libwlb/layout/search_place.h"

void wlb_search_place(const struct wlb_search *search, const struct wlb_plan *plan, struct wlb_search_result *result,
                      int32_t *rank_node, int32_t *rank_gpu, int32_t *idle_node, int32_t *idle_gpu)
{
	int ranks = wlb_layout_ranks(&plan->layout), tp = plan->layout.tp;
	for (int32_t place = 0; place < search->options.nodes; place++) {
		int32_t node = search->order[place], whole = search->usable[node] / tp * tp;
		for (int32_t gpu = 0; gpu < search->usable[node]; gpu++) {
			int used = gpu < whole && result->ranks < ranks;
			int32_t *at = used ? &result->ranks : &result->idle;
			(used ? rank_node : idle_node)[*at] = node;
			(used ? rank_gpu : idle_gpu)[(*at)++] = gpu;
		}
	}
	result->rank_node = rank_node;
	result->rank_gpu = rank_gpu;
	result->idle_node = idle_node;
	result->idle_gpu = idle_gpu;
}
