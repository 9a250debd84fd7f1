/* The text that Prometheus reads at /metrics. Nothing in it is about users. */
#ifndef COORDINATOR_WLBD_API_RUNS_METRICS_H
#define COORDINATOR_WLBD_API_RUNS_METRICS_H

#include <stdbool.h>

struct evbuffer;
struct wlbd;

/* Whether PostgreSQL is connected, and has stored all that it was sent of late. */
bool wlbd_database_stores(const struct wlbd *wlbd);

void wlbd_metrics_write(const struct wlbd *wlbd, struct evbuffer *out);

#endif
