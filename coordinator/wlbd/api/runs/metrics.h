/* The text that Prometheus reads at /metrics. Nothing in it is about users. */
#ifndef COORDINATOR_WLBD_API_RUNS_METRICS_H
#define COORDINATOR_WLBD_API_RUNS_METRICS_H

#include <stdbool.h>

struct evbuffer;
struct wlbd;

/* Whether PostgreSQL is connected, and has stored all that it was sent of late. */
bool wlbd_database_stores(const struct wlbd *wlbd);

/* In Prometheus' text format 0.0.4, or in OpenMetrics 1.0: that names a family of counters without "_total", and has an
 * end. */
void wlbd_metrics_write(const struct wlbd *wlbd, bool is_openmetrics, struct evbuffer *out);

#endif
