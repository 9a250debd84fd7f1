/* Where the time of a run's steps went: the means of their parts over stretches of steps. No I/O. */
#ifndef COORDINATOR_WLB_REPORT_PART_MEANS_H
#define COORDINATOR_WLB_REPORT_PART_MEANS_H

#include <stdint.h>

#include <jansson.h>

struct wlb_part_means;

/* Of the steps from `first` to `last`, in at most 200 stretches. NULL if out of memory. wlb_part_means_free frees it.
 */
struct wlb_part_means *wlb_part_means_new(int64_t first, int64_t last);
void wlb_part_means_free(struct wlb_part_means *means);

/* Adds the `parts` of a step of a reply to GET /v1/runs/RUN/steps, 32 names in all at most; one outside of the range
 * counts to its nearer end. */
void wlb_part_means_add(struct wlb_part_means *means, const json_t *step);

/* Returns {"step":[the first of each stretch], "names":[...], "seconds":[[mean of each stretch], ...]}, an array for
 * each name; without stretches of which no part is known. The caller releases it; NULL if out of memory. */
json_t *wlb_part_means_json(const struct wlb_part_means *means);

#endif
