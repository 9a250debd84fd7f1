/* How far simulated step times are from measured ones. */
#ifndef COORDINATOR_WLB_CALCULATORS_PLAN_CERTAINTY_H
#define COORDINATOR_WLB_CALCULATORS_PLAN_CERTAINTY_H

/* Of the published steps that set no constant of the model, 9 of 10 differ from the simulated step by at most this
 * share of it: the summary of docs/results/planner.md. */
#define WLB_STEP_CERTAINTY 0.21

#endif
