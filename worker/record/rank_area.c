#include "worker/record/rank_area.h"

#include <stdlib.h>

#include "coordinator/client/node_page.h"

void wlb_rank_area_open(struct wlb_rank_area *area, const char *attempt_id, int rank)
{
	struct wlb_error printed_by_the_recorder;
	const char *path = getenv("WLB_NODE_PAGE");
	*area = (struct wlb_rank_area){0};
	if (path == NULL)
		return;
	area->page = wlb_node_page_open(path, attempt_id, &printed_by_the_recorder);
	if (area->page != NULL)
		area->trace = wlb_node_page_take_area(area->page, rank);
}

void wlb_rank_area_close(struct wlb_rank_area *area)
{
	wlb_node_page_close(area->page);
	*area = (struct wlb_rank_area){0};
}
