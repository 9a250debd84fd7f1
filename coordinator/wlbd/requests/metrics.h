/* The text that Prometheus reads at /metrics. Nothing in it is about users. */
#ifndef COORDINATOR_WLBD_REQUESTS_METRICS_H
#define COORDINATOR_WLBD_REQUESTS_METRICS_H

struct evbuffer;
struct wlbd;

void wlbd_metrics_write(const struct wlbd *wlbd, struct evbuffer *out);

#endif
