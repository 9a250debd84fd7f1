/* Prints and dumps the results of `wlb pack`. */
#ifndef PLANNER_CLI_PACK_REPORT_H
#define PLANNER_CLI_PACK_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "libwlb/wlb.h"
#include "planner/cli/pack/tally.h"

/* The summary as an object; returns NULL if out of memory. */
json_t *wlb_pack_json(const struct wlb_pack_summary *summary);

/* Prints the table, and the imbalance of every step as a curve. Returns -1 if out of memory. */
int wlb_pack_print(const struct wlb_pack_summary *summary, const struct wlb_pack_tally *tally);

/* Prints the micro-batches of a step as bars of their work, with their tokens. */
void wlb_pack_print_step(const struct wlb_step *step);

/* Writes lines "step micro_batch document_index start length"; the header is the line with these names. */
void wlb_pack_dump_header(FILE *out);
void wlb_pack_dump_step(FILE *out, const struct wlb_step *step);

#endif
