/* Counters, and the text that Prometheus reads at /metrics. Nothing there tells about users. */
#ifndef COORDINATOR_WLBD_METRICS_H
#define COORDINATOR_WLBD_METRICS_H

#include <stdint.h>

struct evbuffer;
struct wlbd;

struct wlbd_metrics {
	uint64_t requests[6]; /* by the first digit of the status */
	uint64_t records_stored;
	uint64_t reports;
	uint64_t attempts_started;
	uint64_t faults_node_lost;
	uint64_t faults_rank_lost;
	uint64_t faults_step_failed;
	uint64_t faults_launcher_lost;
	uint64_t faults_script_lost;
	uint64_t statements_set_aside; /* of the outbox: what wlbd found out and could not store */
	uint64_t database_losses;      /* connections lost or not made */
	double request_seconds;        /* sum, from the first byte handled to the reply */
};

void wlbd_metrics_write(const struct wlbd *wlbd, struct evbuffer *out);

#endif
