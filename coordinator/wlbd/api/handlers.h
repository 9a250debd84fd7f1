/* One function for each request of docs/api.md. Its credential was accepted, and a POST has a body, which is an
 * object. */
#ifndef COORDINATOR_WLBD_API_HANDLERS_H
#define COORDINATOR_WLBD_API_HANDLERS_H

struct wlbd_request;

/* reads.c */
void wlbd_get_health(struct wlbd_request *request);
void wlbd_get_metrics(struct wlbd_request *request);
void wlbd_get_runs(struct wlbd_request *request);
void wlbd_get_run(struct wlbd_request *request);
void wlbd_get_steps(struct wlbd_request *request);
void wlbd_get_ranks(struct wlbd_request *request);
void wlbd_get_faults(struct wlbd_request *request);

/* queries.c */
void wlbd_post_query(struct wlbd_request *request);

/* calibrations.c */
void wlbd_post_calibration(struct wlbd_request *request);
void wlbd_get_calibration(struct wlbd_request *request);

/* node_checks.c */
void wlbd_post_node_check(struct wlbd_request *request);
void wlbd_post_run_node_check(struct wlbd_request *request);
void wlbd_get_nodes(struct wlbd_request *request);

/* runs.c */
void wlbd_post_run(struct wlbd_request *request);
void wlbd_post_end(struct wlbd_request *request);

/* settings.c */
void wlbd_post_settings(struct wlbd_request *request);

/* tags.c */
void wlbd_post_tags(struct wlbd_request *request);
void wlbd_post_notes(struct wlbd_request *request);

/* attempt_request.c */
void wlbd_post_attempt(struct wlbd_request *request);

/* records.c */
void wlbd_post_records(struct wlbd_request *request);

/* report.c */
void wlbd_post_report(struct wlbd_request *request);

/* stacks_request.c */
void wlbd_post_stacks_gather(struct wlbd_request *request);
void wlbd_post_stacks(struct wlbd_request *request);
void wlbd_get_stacks(struct wlbd_request *request);

#endif
