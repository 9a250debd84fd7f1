/* Requests of `wlb run` to the coordinator: the next attempt, and the end of the run. */
#ifndef COORDINATOR_WLB_RUN_LOOP_ASK_ATTEMPT_H
#define COORDINATOR_WLB_RUN_LOOP_ASK_ATTEMPT_H

#include "coordinator/wlb/run/loop/next.h"

/* Asks for the next attempt until there is a decision, and for up to `unavailable_s` while the coordinator does not
 * answer. turn->next holds its id already and receives the rest. Sets turn->answer. On STOP, turn->next.reason and
 * turn->state are the coordinator's; on UNAVAILABLE turn->error says what failed; on REFUSED it has the words of a
 * coordinator that takes no such request (400 to 499), and nothing was waited for; on WAIT the run does not wait any
 * longer, as wlb_run_next() says. */
void wlb_run_ask(struct wlb_run *run, struct wlb_turn *turn, int unavailable_s);

/* Reports that the run, whose last attempt is `last` or NULL, is over, until run->end_until_ms. A coordinator that does
 * not answer reads it from the delivered spool. */
void wlb_run_end(const struct wlb_run *run, const struct wlb_attempt *last, const char *state, int exit_code,
                 const char *reason);

#endif
