/* Prints the steps of a run page by page, so that no more than one is in memory. */
#ifndef COORDINATOR_WLB_HISTORY_PRINT_STEPS_H
#define COORDINATOR_WLB_HISTORY_PRINT_STEPS_H

#include "coordinator/wlb/history/steps.h"

/* All print to standard output. `choice` NULL: all steps. Return -1 with the reason where the steps could not be read
 * or written. */

/* `before`, which begins a JSON object and ends with the name of a member, an array of a step a line, and the end of
 * the object. Prints nothing where the first page cannot be read. */
int wlb_steps_print_json(const char *run, const struct wlb_steps_choice *choice, const char *before,
                         struct wlb_error *error);

/* CSV, with a line of names. */
int wlb_steps_print_csv(const char *run, const struct wlb_steps_choice *choice, struct wlb_error *error);

/* A table, with the titles at the begin of each page; "no steps" where there are none. */
int wlb_steps_print_table(const char *run, const struct wlb_steps_choice *choice, struct wlb_error *error);

/* The table of one page, each row after `indent`. Returns -1 if out of memory. */
int wlb_steps_print_page(const json_t *steps, const char *indent);

#endif
