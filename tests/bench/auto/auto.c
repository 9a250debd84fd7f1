/*
 * Predicts the step of wlb-worker under every layout of a number of ranks on one node, by the planner's code for
 * --layout auto. Usage: wlb-auto-bench RANKS OPTION..., with the options of `wlb-worker train`.
 *
 * Prints a line for the plan that auto chooses, which begins with "auto", and one for each layout and interleaving that
 * can run, which begins with "layout", with the micro-batches and recomputation that the planner chooses for it. Fields
 * are separated by tabs: the layout, interleave, --micro-batch-size, --recompute-granularity, the seconds of a step,
 * --head-stages, and the seconds of a step in which tensor-parallel communication, context-parallel communication, with
 * the waits for the rank with the most attention, and data-parallel communication is exposed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/automatic.h"
#include "worker/launch/auto_request.h"

enum { MOST_RANKS = 1024, MOST_INTERLEAVE = 4 };

static const char *const recompute_names[] = {
	[WLB_RECOMPUTE_NONE] = "none", [WLB_RECOMPUTE_SELECTIVE] = "selective", [WLB_RECOMPUTE_FULL] = "full"};

static void print_plan(const char *kind, const struct wlb_auto *found)
{
	const struct wlb_candidate *best = &found->result->ranked[0];
	char layout[64];
	wlb_layout_format(&best->plan.layout, layout, sizeof(layout));
	printf("%s\t%s\t%d\t%lld\t%s\t%.9g\t%s\t%.9g\t%.9g\t%.9g\n", kind, layout, best->plan.interleave,
	       (long long)found->micro_batch_windows, recompute_names[best->plan.recompute], best->step_s,
	       best->plan.shared_head ? "all" : "last", best->time.tp_s, best->time.cp_s + best->time.cp_imbalance_s,
	       best->time.dp_s);
}

/* Returns -1 with the reason where no plan of the request can run. */
static int predict(const struct wlb_auto_request *request, const char *kind, struct wlb_error *error)
{
	struct wlb_auto found = {0};
	int rc = wlb_auto_find(request, &found, error);
	if (rc == 0)
		print_plan(kind, &found);
	wlb_auto_free(&found);
	return rc;
}

static void predict_interleaved(struct wlb_auto_request request, int tp, int cp, int pp, int dp)
{
	struct wlb_error error; /* a layout that cannot run has no line */
	request.fixed.tp = tp;
	request.fixed.cp = cp;
	request.fixed.pp = pp;
	request.fixed.dp = dp;
	for (int interleave = 1; interleave <= (pp > 1 ? MOST_INTERLEAVE : 1); interleave++) {
		request.fixed.interleave = interleave;
		predict(&request, "layout", &error);
	}
}

static void predict_layouts(const struct wlb_auto_request *request, int ranks)
{
	for (int tp = 1; tp <= ranks; tp++)
		for (int cp = 1; tp * cp <= ranks; cp++)
			for (int pp = 1; tp * cp * pp <= ranks; pp++)
				if (ranks % (tp * cp * pp) == 0)
					predict_interleaved(*request, tp, cp, pp, ranks / (tp * cp * pp));
}

int main(int argc, char **argv)
{
	struct wlb_error error = {"usage: wlb-auto-bench RANKS OPTION..., RANKS from 1 to 1024"};
	struct wlb_train_options options;
	struct wlb_auto_request request;
	int ranks = argc > 2 ? atoi(argv[1]) : 0, rc = -1;
	if (ranks >= 1 && ranks <= MOST_RANKS)
		rc = wlb_train_options_parse(argc - 1, argv + 1, &options, &error);
	if (rc == WLB_OPTIONS_READ) {
		wlb_train_auto_request(&options, NULL, &request);
		request.nodes = (struct wlb_nodes){.count = 1, .ranks_per_node = ranks};
		request.every_rank = 1;
		rc = predict(&request, "auto", &error);
	}
	if (rc != 0) {
		fprintf(stderr, "wlb-auto-bench: %s\n", error.message);
		return 1;
	}
	predict_layouts(&request, ranks);
	return 0;
}
