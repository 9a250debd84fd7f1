/* Parts of `wlb pack`: what is measured over the steps of a stream, and how it is shown. */
#ifndef COORDINATOR_WLB_CALCULATORS_PACK_PACK_H
#define COORDINATOR_WLB_CALCULATORS_PACK_PACK_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "coordinator/wlb/calculators/lengths_file.h"

/* What was measured. Starts zeroed. */
struct wlb_pack_tally {
	double *imbalances; /* of each step, `steps`; owned */
	int64_t steps, capacity;
	double waited_token_steps;
	int64_t tokens_packed;
	int64_t cuts;
	int32_t delay_max_steps;
	double busy_s; /* of the processor, in the packer */
};

int wlb_pack_tally_add(struct wlb_pack_tally *tally, const struct wlb_step *step, double busy_s,
                       struct wlb_error *error);
void wlb_pack_tally_free(struct wlb_pack_tally *tally);

/* What --json gives and the table shows. */
struct wlb_pack_summary {
	struct wlb_packer_options options;
	int64_t steps;
	double imbalance_mean, imbalance_p99, imbalance_max; /* 1 where there are no steps */
	double delay_mean_steps;                             /* over all tokens packed */
	int32_t delay_max_steps;
	int64_t documents;
	int64_t tokens_in, tokens_packed, tokens_held; /* in = packed + held */
	int64_t cuts;
	double pack_us_per_step;
};

int wlb_pack_summarize(const struct wlb_pack_tally *tally, const struct wlb_length_list *list,
                       const struct wlb_packer_options *options, struct wlb_pack_summary *summary,
                       struct wlb_error *error);

/* The summary as an object; NULL without memory. */
json_t *wlb_pack_json(const struct wlb_pack_summary *summary);

/* The table, and the imbalance of every step as a curve. -1 without memory. */
int wlb_pack_print(const struct wlb_pack_summary *summary, const struct wlb_pack_tally *tally);

/* The micro-batches of a step as bars of their work, with their tokens. */
void wlb_pack_print_step(const struct wlb_step *step);

/* Lines "step micro_batch document_index start length", behind the one that names them. */
void wlb_pack_dump_header(FILE *out);
void wlb_pack_dump_step(FILE *out, const struct wlb_step *step);

/* A picture: each micro-batch a row, each document a box, as wide as its work on the left and as its tokens on the
 * right. */
int wlb_pack_draw(const char *path, const struct wlb_step *step, const struct wlb_model *model, int64_t seq_length,
                  struct wlb_error *error);

#endif
