/* How far a run is, and when it will end, from its newest steps. */
#ifndef COORDINATOR_WLB_TOP_PROGRESS_H
#define COORDINATOR_WLB_TOP_PROGRESS_H

#include <jansson.h>
#include <stddef.h>

enum { WLB_PROGRESS_STEPS = 10 }; /* speed and time left are those of so many newest steps */

/* Writes "step 41 of 90, loss 4.1657, 6766 tokens/s, 0:48 left"; what is not known is "-". `run` has last_step,
 * train_iters, last_loss and state, as the coordinator's replies have them. `steps` are its newest ones; NULL: none. */
void wlb_progress_format(const json_t *run, const json_t *steps, char *text, size_t size);

#endif
