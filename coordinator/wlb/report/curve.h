/* The curves of a run, thinned so that what stands out stays: in each stretch of steps the least and the greatest loss
 * and speed, and a step whose loss is not a number. No I/O. */
#ifndef COORDINATOR_WLB_REPORT_CURVE_H
#define COORDINATOR_WLB_REPORT_CURVE_H

#include <stdint.h>

#include <jansson.h>

struct wlb_report_curve;

/* Of the steps from `first` to `last`, in at most `points` (>= 5) points; all where there are no more than that. NULL
 * if out of memory. wlb_report_curve_free frees it. */
struct wlb_report_curve *wlb_report_curve_new(int64_t first, int64_t last, int points);
void wlb_report_curve_free(struct wlb_report_curve *curve);

/* Adds a step of a reply to GET /v1/runs/RUN/steps. The steps ascend; one outside of the range counts to its nearer
 * end, since a run may go on while it is read. */
void wlb_report_curve_add(struct wlb_report_curve *curve, const json_t *step);

/* Returns {"step":[...], "attempt":[...], "loss":[...], ...}, arrays of equal length that ascend by step: the numbers
 * of the reply, null where it has none; `time_s` is seconds since the first step that was added, `tokens` those of all
 * steps up to this one. Where only some of the steps were added, `run_tokens` is the sum of all, of which each point
 * has its part; 0 where all were. Beside the arrays
 * `mean_tokens_per_s` is tokens in a second of the steps that were added, or null. The caller releases it; NULL if out
 * of memory. */
json_t *wlb_report_curve_json(const struct wlb_report_curve *curve, double run_tokens);

#endif
