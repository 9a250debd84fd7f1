/* What `wlb top` shows of a run, asked of the coordinator. A key or a signal ends the request (wlb_connection_cancel_on
 * of client.h), so that q works while the coordinator does not answer. */
#ifndef COORDINATOR_WLB_TOP_FETCH_H
#define COORDINATOR_WLB_TOP_FETCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "coordinator/client/client.h"
#include "coordinator/wlb/top/ranks.h"

struct wlb_top_view {
	json_t *run;   /* the reply to GET /v1/runs/RUN/ranks; NULL: nothing was fetched yet */
	json_t *steps; /* the newest ones; NULL: there are none */
	struct wlb_top_ranks ranks;
	int64_t fetched_ms;
};

/* Replaces the view, which begins as {0}. Returns -1 where the coordinator did not answer (*status 0) or refused
 * (*status as answered); the view is unchanged then. */
int wlb_top_fetch(struct wlb_connection *connection, const char *run, int timeout_ms, struct wlb_top_view *view,
                  int *status, struct wlb_error *error);

void wlb_top_view_free(struct wlb_top_view *view);

bool wlb_top_view_has_ended(const struct wlb_top_view *view);

#endif
