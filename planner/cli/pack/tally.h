/* Sums the imbalance, delay and packing time that `wlb pack` measures over the steps of a stream. */
#ifndef PLANNER_CLI_PACK_TALLY_H
#define PLANNER_CLI_PACK_TALLY_H

#include <stdint.h>

#include "libwlb/wlb.h"
#include "planner/length_list.h"

/* Sums over the steps packed so far. Starts zeroed. */
struct wlb_pack_tally {
	double *imbalances; /* of each step, `steps`; owned */
	int64_t steps, capacity;
	double waited_token_steps;
	int64_t tokens_packed;
	int64_t cuts;
	int32_t delay_max_steps;
	double cpu_s; /* processor time in the packer */
};

int wlb_pack_tally_add(struct wlb_pack_tally *tally, const struct wlb_step *step, double cpu_s,
                       struct wlb_error *error);
void wlb_pack_tally_free(struct wlb_pack_tally *tally);

/* The measures that --json and the table print. */
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

#endif
