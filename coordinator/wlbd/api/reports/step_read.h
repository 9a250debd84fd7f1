/* The steps of a report, which say what the ranks of a node spent in each step that they have ended. Pure: no I/O, and
 * nothing is allocated. */
#ifndef COORDINATOR_WLBD_API_REPORTS_STEP_READ_H
#define COORDINATOR_WLBD_API_REPORTS_STEP_READ_H

#include <jansson.h>

#include "coordinator/wlbd/detection/rank_step.h"
#include "libwlb/wlb.h"

enum { WLBD_STEPS_MAX = 256 };

/* Sets *steps to the field 'steps' of a report, which stays the body's; it is unchanged where the field is absent.
 * Returns -1 with the value that is wrong. A rank has a step once; whether it is the node's is not checked. */
int wlbd_steps_check(const json_t *body, const json_t **steps, struct wlb_error *error);

/* Reads one entry. Returns -1 with the value that is wrong. */
int wlbd_step_read(const json_t *entry, struct wlbd_rank_step *step, struct wlb_error *error);

#endif
