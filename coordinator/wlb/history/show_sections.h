/* Prints the sections of `wlb show` about one run, from the reply of GET /v1/runs/RUN and from its steps. */
#ifndef COORDINATOR_WLB_HISTORY_SHOW_SECTIONS_H
#define COORDINATOR_WLB_HISTORY_SHOW_SECTIONS_H

#include <jansson.h>

/* All print to stdout. Returns -1 if out of memory. */
int wlb_show_summary(const json_t *run);
int wlb_show_attempts(const json_t *run);
int wlb_show_faults(const json_t *run);
int wlb_show_verdicts(const json_t *run);
int wlb_show_checkpoints(const json_t *run);
int wlb_show_evaluations(const json_t *run);
int wlb_show_events(const json_t *run);
int wlb_show_loss(const json_t *run, const json_t *steps);
int wlb_show_steps(const json_t *steps);

#endif
