/* Queries of users, under way: POST /v1/query. */
#ifndef COORDINATOR_WLBD_API_RUNS_QUERIES_H
#define COORDINATOR_WLBD_API_RUNS_QUERIES_H

#include <event2/event.h>

struct wlb_error;

struct wlbd_queries;

/* Starts the threads that wait for PostgreSQL. Returns NULL if out of memory or of threads. */
struct wlbd_queries *wlbd_queries_new(struct event_base *base, struct wlb_error *error);

/* Cancels the queries under way, which are answered with 503, and waits for them. NULL is allowed. */
void wlbd_queries_free(struct wlbd_queries *queries);

#endif
