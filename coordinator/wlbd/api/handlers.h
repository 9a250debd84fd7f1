/* One function for each request of docs/api.md. The call's credential was accepted, and a POST has a body, which is an
 * object. */
#ifndef COORDINATOR_WLBD_API_HANDLERS_H
#define COORDINATOR_WLBD_API_HANDLERS_H

struct wlbd_call;

/* get_handlers.c */
void wlbd_get_health(struct wlbd_call *call);
void wlbd_get_metrics(struct wlbd_call *call);
void wlbd_get_runs(struct wlbd_call *call);
void wlbd_get_run(struct wlbd_call *call);
void wlbd_get_steps(struct wlbd_call *call);
void wlbd_get_ranks(struct wlbd_call *call);
void wlbd_get_faults(struct wlbd_call *call);

/* calibrations.c */
void wlbd_post_calibration(struct wlbd_call *call);
void wlbd_get_calibration(struct wlbd_call *call);

/* node_checks.c */
void wlbd_post_node_check(struct wlbd_call *call);
void wlbd_post_run_node_check(struct wlbd_call *call);
void wlbd_get_nodes(struct wlbd_call *call);

/* runs.c */
void wlbd_post_run(struct wlbd_call *call);
void wlbd_post_end(struct wlbd_call *call);

/* settings.c */
void wlbd_post_settings(struct wlbd_call *call);

/* attempt_request.c */
void wlbd_post_attempt(struct wlbd_call *call);

/* records.c */
void wlbd_post_records(struct wlbd_call *call);

/* report.c */
void wlbd_post_report(struct wlbd_call *call);

/* stacks_request.c */
void wlbd_post_stacks_gather(struct wlbd_call *call);
void wlbd_post_stacks(struct wlbd_call *call);
void wlbd_get_stacks(struct wlbd_call *call);

#endif
