/* How far simulated step times are from measured ones. */
#ifndef COORDINATOR_WLB_CALCULATORS_PLAN_CERTAINTY_H
#define COORDINATOR_WLB_CALCULATORS_PLAN_CERTAINTY_H

/* Of the 142 published steps by which no constant of the model was set, 9 of 10 are predicted with an error of at most
 * this share of the published time: the rows of docs/results/planner.md. Returns it; 0 where none of these steps is of
 * the machine that `gpu` names, or has a window of about that length: nothing is then known of the error. */
double wlb_step_certainty(const char *gpu, int seq_length);

#endif
