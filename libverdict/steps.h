/* Collects what ranks report of a step, and has it judged when all have, or most have ended later ones. Internal. */
#ifndef LIBVERDICT_STEPS_H
#define LIBVERDICT_STEPS_H

#include "libverdict/detector_state.h"

/* Returns -1 if out of memory; verdict_steps_free frees them in either case. */
int verdict_steps_init(struct verdict_steps *steps, const struct verdict_world *world);
void verdict_steps_free(struct verdict_steps *steps);

#endif
