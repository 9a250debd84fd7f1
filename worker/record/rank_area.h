/* The area of the node page (coordinator/client/node_page.h) in which wlb-agent reads what this rank does. */
#ifndef WORKER_RECORD_RANK_AREA_H
#define WORKER_RECORD_RANK_AREA_H

#include "common/rank_trace.h"

struct wlb_node_page;

struct wlb_rank_area {
	struct wlb_node_page *page;
	struct wlb_rank_trace *trace; /* NULL where no agent reads it: none runs, or it is of another release */
};

void wlb_rank_area_open(struct wlb_rank_area *area, const char *attempt_id, int rank);
void wlb_rank_area_close(struct wlb_rank_area *area); /* also of zeros */

#endif
