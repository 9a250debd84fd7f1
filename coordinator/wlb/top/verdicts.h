/* The open verdicts of a run from the coordinator's reply to GET /v1/runs/RUN/ranks. */
#ifndef COORDINATOR_WLB_TOP_VERDICTS_H
#define COORDINATOR_WLB_TOP_VERDICTS_H

#include <jansson.h>
#include <stdbool.h>

struct wlb_top_verdict {
	const json_t *entry; /* in the reply */
	bool is_confirmed;   /* else suspected */
	double since_s;      /* how long ago it began */
};

struct wlb_top_verdicts {
	struct wlb_top_verdict *list; /* [count], in the order of the reply */
	int count;
};

/* Returns -1 if out of memory. A reply of a coordinator that sends no verdicts has none. wlb_top_verdicts_free releases
 * them. */
int wlb_top_verdicts_read(const json_t *reply, struct wlb_top_verdicts *verdicts);
void wlb_top_verdicts_free(struct wlb_top_verdicts *verdicts);

#endif
