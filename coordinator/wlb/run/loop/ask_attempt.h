/* Requests of `wlb run` to the coordinator: the next attempt, and the end of the run. */
#ifndef COORDINATOR_WLB_RUN_LOOP_ASK_ATTEMPT_H
#define COORDINATOR_WLB_RUN_LOOP_ASK_ATTEMPT_H

#include <jansson.h>

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Asks for the next attempt until there is a decision, and for up to `unavailable_s` while the coordinator does not
 * answer. `attempt` holds the id already and receives the rest; `previous` is NULL for the first. On STOP,
 * attempt->reason and *state are the coordinator's; on UNAVAILABLE the message says what failed; on REFUSED it has the
 * words of a coordinator that takes no such request (400 to 499), and nothing was waited for; on WAIT the run does not
 * wait any longer, as wlb_run_next() says. */
enum wlb_answer wlb_run_ask(struct wlb_run *run, const struct wlb_attempt *previous, int unavailable_s,
                            struct wlb_attempt *attempt, char state[32], struct wlb_error *error);
/* Fills in an attempt on all nodes of the job, with a layout computed here. */
int wlb_run_decide_alone(const struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error);
/* Reports that the run is over, until run->end_until_ms. A coordinator that does not answer reads it from the
 * delivered spool. */
void wlb_run_end(struct wlb_run *run, const char *state, int exit_code, const char *reason);

/* Adds to `object` what ended the last attempt, as far as it is known: "first_exit" {"rank":5,"node":"n3","signal":9}
 * when a task was killed, "launch_failure" {"node":"n3","why":"...","time":...} when a node did not launch its tasks,
 * "srun_signal" when srun was killed. */
void wlb_run_put_first_exit(const struct wlb_run *run, json_t *object);

#endif
