/* Packs and simulates steps with each strategy that `wlb sim` compares. */
#ifndef PLANNER_CLI_SIM_RUN_H
#define PLANNER_CLI_SIM_RUN_H

#include "libwlb/wlb.h"
#include "planner/cli/plan/input.h"

/* How documents are packed, and how micro-batches are then sharded. */
struct wlb_sim_strategy {
	const char *name;
	const char *words; /* for people */
	enum wlb_strategy packing;
	enum wlb_sharding sharding;
	enum wlb_sim_attention attention;
};

/* "plain", "fixed", "greedy", "balanced", "dynamic", "hybrid", "servers"; NULL for others. */
const struct wlb_sim_strategy *wlb_sim_strategy_find(const char *name);

/* The result of one strategy: means over its steps. */
struct wlb_sim_run {
	const struct wlb_sim_strategy *strategy;
	struct wlb_sim_time time;
	double tokens_per_s;    /* of the documents that arrived, if none of their work were held back */
	double held_back_share; /* work held after the steps more than before, by the work of the steps; may be negative
	                         */
	double utilization;
	double imbalance;           /* of the packed steps */
	int64_t micro_batch_tokens; /* of the longest */
	struct wlb_memory memory;   /* of the stage that needs most, for that micro-batch */
	int32_t stage;              /* with that memory */
	double missing_bytes;       /* beyond the GPU's memory; 0 where the plan fits */
	struct wlb_sim_event *bars; /* of the last step, the replica that ends last; owned */
	size_t bar_count;
};

enum { WLB_SIM_RUNS_MAX = 8 };

/* The cost of failures to a run; mtbf_s 0: not requested. */
struct wlb_sim_failures {
	struct wlb_failures given;
	struct wlb_goodput found;
};

struct wlb_sim_report {
	struct wlb_plan plan;
	int steps;
	struct wlb_sim_run runs[WLB_SIM_RUNS_MAX];
	int count;
	int base; /* the run that the others are compared with: plain, else the first */
	struct wlb_sim_failures failures;
};

/* "5:1.5,9:2": rank 5's computation takes 1.5 times as long. slowdown[] has a factor for each of `ranks` ranks. */
int wlb_sim_parse_slow(const char *list, int ranks, double *slowdown, struct wlb_error *error);

/* Packs and simulates `steps` steps. */
int wlb_sim_run_strategy(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                         const struct wlb_sim_options *options, int steps, struct wlb_sim_run *run,
                         struct wlb_error *error);
void wlb_sim_report_free(struct wlb_sim_report *report);

#endif
