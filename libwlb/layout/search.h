/* The parts of the layout search; internal. */
#ifndef LIBWLB_LAYOUT_SEARCH_H
#define LIBWLB_LAYOUT_SEARCH_H

#include "libwlb/wlb.h"

/* What one micro-batch's worth of documents amounts to, in all. */
struct wlb_search_work {
	double tokens; /* of a step */
	double pairs;  /* of a query and a key it sees, of a step */
};

struct wlb_search_plan {
	struct wlb_candidate candidate;
	double guess_s; /* what a step will about take: the bound, and what is likely added to it */
};

/* Lengths of documents by powers of two: 2^30 at most. */
enum { WLB_SEARCH_LENGTHS = 31 };

struct wlb_search {
	struct wlb_model model;
	struct wlb_machine machine;
	struct wlb_search_options options;
	struct wlb_search_work work;
	int64_t *tokens; /* the documents of the samples, one after another */
	size_t documents;
	int64_t longest;
	double tokens_of_length[WLB_SEARCH_LENGTHS]; /* [b]: in documents of 2^b to 2^(b + 1) - 1 */
	int32_t *order, *leaf;                       /* nodes as the topology has them */
	int32_t *usable;                             /* GPUs of each node, by its number */
	int32_t most_usable;
	struct wlb_search_plan *plans;
	size_t count, capacity;
};

/* Groups of tp GPUs that fit inside the nodes. */
int64_t wlb_search_slots(const struct wlb_search *search, int32_t tp);

/* Fills `plans` with every one that machine and model allow, memory and bound with each. */
int wlb_search_enumerate(struct wlb_search *search, struct wlb_error *error);

/* Simulates a candidate: its step_s and time. -1 without memory; a plan that its documents find no room in stays at
 * step_s 0. */
int wlb_search_simulate(const struct wlb_search *search, struct wlb_candidate *candidate, struct wlb_error *error);

/* Writes where the plan's ranks run and which GPUs stay idle; arrays of as many as there are usable GPUs. */
void wlb_search_place(const struct wlb_search *search, const struct wlb_plan *plan, struct wlb_search_result *result,
                      int32_t *rank_node, int32_t *rank_gpu, int32_t *idle_node, int32_t *idle_gpu);

#endif
