/* The pipeline of a step as its layout has it run: which stage does which pass when, with micro-batches of equal work.
 */
#ifndef COORDINATOR_WLB_REPORT_PIPELINE_H
#define COORDINATOR_WLB_REPORT_PIPELINE_H

#include <jansson.h>

/* Returns the schedule of the newest attempt's plan: {"stages":4, "chunks":1, "micro_batches":8, "unit":"s", "end":0.9,
 * "bubble":0.27, "passes":[[stage, chunk, micro-batch, 1 for backward, start, end], ...]}; `bubble` is the share of the
 * stages' time in which they wait. A pass takes what the parts of a step, from wlb_part_means_json(), say in the mean;
 * where they do not, `unit` is "forward passes", and a backward pass takes two. Null, not NULL, where the run has no
 * plan with several stages, or one of more than 4,096 passes, which nobody could tell apart in a picture. NULL if out
 * of memory. The caller releases it. */
json_t *wlb_report_pipeline(const json_t *run, const json_t *parts);

#endif
