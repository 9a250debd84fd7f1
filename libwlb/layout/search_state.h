/* The state of the layout search, its input and the plans that it has found so far, and the stages that use it: which
 * values are fixed, every plan with its bound, and the choice among them by simulation. Internal. */
#ifndef LIBWLB_LAYOUT_SEARCH_STATE_H
#define LIBWLB_LAYOUT_SEARCH_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/cost/layer.h"
#include "libwlb/wlb.h"

/* The total work of the documents of a step. */
struct wlb_search_work {
	double tokens; /* of a step */
	double pairs;  /* of a query and a key that it attends to, in a step, in the mean layer */
};

struct wlb_search_plan {
	struct wlb_candidate candidate;
	double estimate_s;   /* estimated time of a step: the bound and the likely additions to it */
	int64_t most_layers; /* of a stage that is not the last */
	int64_t last_layers; /* of the last stage */
	int misfit_group;    /* 0: of a layout (tp, cp, pp) of powers of two of which no plan fits, the one that misses
	                        least; 1: the same of another layout; 2: all others */
};

/* Shares of a micro-batch in the batch, in windows, for which the longest micro-batch is known: 2^FIRST and from there
 * on STEPS to each power of two. */
enum { WLB_SEARCH_PACK_FIRST = -4, WLB_SEARCH_PACK_STEPS = 4, WLB_SEARCH_PACK_TABLE = 16 * WLB_SEARCH_PACK_STEPS };

/* Lengths of documents by powers of two: 2^30 at most. */
enum { WLB_SEARCH_LENGTHS = 31 };

/* Some of the samples' documents, for `bins` micro-batches. */
struct wlb_search_draw {
	double windows; /* share of a micro-batch in the batch */
	double fill;    /* tokens of a micro-batch, by those of its share */
	int32_t bins;
	int32_t draw, draws; /* of so many draws, from 0 on */
};

/* Documents packed into micro-batches; search_pack.h. */
struct wlb_search_packing {
	struct wlb_search_draw of; /* its bins are 0: empty */
	int64_t *tokens;           /* of `count` documents */
	int32_t *bin_of;
	struct wlb_packed_span *spans; /* in the order of micro-batches */
	size_t count;
	int64_t longest; /* tokens of the longest micro-batch */
};

/* Kept, since plans with equal micro-batches follow each other; the oldest is replaced. */
enum { WLB_SEARCH_PACKINGS = 128 };

/* What a layer and the head of a layout and ep take for the tokens of a mean replica in a step, at the highest rates
 * and without latencies. */
struct wlb_search_layer {
	struct wlb_layout layout;
	int32_t ep;
	int hides_exchange;                /* wlb_layer_hides_exchange of the plan */
	struct wlb_seconds pass_s, keys_s; /* computation and what tp and ep add; gathering keys and values */
	double again_s;                    /* of a forward pass that is computed again */
	double head_s;
};

/* What the products of a layer take beyond the least time in a micro-batch of so many tokens of a rank. */
struct wlb_search_products {
	int32_t tp, ep; /* tp is 0 before they are set */
	double tokens;
	struct wlb_seconds beyond_s;
};

enum { WLB_SEARCH_PRODUCTS = 64 }; /* kept, one for each number of micro-batches that is equal by modulo */

struct wlb_search {
	struct wlb_model model;
	struct wlb_machine machine;
	struct wlb_search_options options;
	struct wlb_search_work work;
	int64_t *tokens; /* the documents of the samples, the longest first */
	double *squares; /* [documents + 1]: the sum of the squares of the first ones */
	size_t documents;
	int64_t longest;
	struct wlb_search_packing packings[WLB_SEARCH_PACKINGS];
	int next_packing;
	double longest_ratio[WLB_SEARCH_PACK_TABLE]; /* of wlb_search_longest; 0: not known yet */
	double tokens_of_length[WLB_SEARCH_LENGTHS]; /* [b]: in documents of 2^b to 2^(b + 1) - 1 */
	int32_t *order, *leaf;                       /* of nodes, as wlb_topology_order sets them */
	int32_t *usable;                             /* GPUs of each node, by its number */
	int32_t most_usable;
	int32_t gpus;                  /* usable, of all nodes */
	struct wlb_search_layer layer; /* of the layout whose bound was set last; tp is 0 before */
	struct wlb_search_products products[WLB_SEARCH_PRODUCTS];
	struct wlb_search_plan *plans; /* those with the same tp, cp and pp follow each other */
	size_t count, capacity;
	size_t dropped; /* plans that do not fit, beyond those of their layout that a result can have */
};

/* Returns 1 where micro-batches are of all replicas, whose ranks each document is on as many of as it needs. */
static inline int wlb_search_places(const struct wlb_search_options *options)
{
	return options->dynamic && options->cost.trainer == WLB_COST_WORKER;
}

/* -- search_fixed.c -- */
/* Returns 0, or -1 with the value and the rule where no plan can have what is fixed. The nodes must have been read. */
int wlb_search_check_fixed(const struct wlb_search *search, struct wlb_error *error);

/* Fails because no plan has all that is fixed together, or a rank on every GPU: the message names it. `most` is the
 * most GPUs that a plan uses where some may be idle, 0: none has a plan, or it was not asked. Returns -1. */
int wlb_search_fail_fixed(const struct wlb_search *search, int32_t most, struct wlb_error *error);

/* -- search_enumerate.c -- */
/* Fills `plans` with every plan that the machine and the model allow, each with its memory and bound. */
int wlb_search_enumerate(struct wlb_search *search, struct wlb_error *error);

/* -- search_bound.c -- */
/* Sets the candidate's bound_s and the plan's estimate_s from its plan, its micro_batch_tokens and the layers of its
 * stages. */
void wlb_search_bound(struct wlb_search *search, struct wlb_search_plan *plan);

/* -- search_simulate.c -- */
/* Simulates a candidate and sets its times, and its micro_batch_tokens to the longest of the simulated micro-batches
 * (unless the limit is charged). Returns -1 if out of memory. */
int wlb_search_simulate(struct wlb_search *search, struct wlb_candidate *candidate, struct wlb_error *error);

/* -- search_prefer.c -- */
/* Moves the least unusual of the plans that are at most near_equal slower than the first to the front, with
 * prefer_every_gpu one without idle GPUs before all others; the fastest of equals. The plans are by ascending step
 * time, `count` of them simulated. Returns 1 where that changes the first. */
int wlb_search_prefer(const struct wlb_search *search, const struct wlb_search_plan **plans, size_t count);

/* Sets misfit_group of all plans. */
void wlb_search_group_misfits(struct wlb_search *search);

/* Orders plans that do not fit by group, and those of a group by ascending missing bytes. Returns -1 if out of memory.
 */
int wlb_search_order_misfits(const struct wlb_search_plan **plans, size_t count);

/* -- search_choose.c -- */
/* The result and the memory it points into. */
struct wlb_search_found {
	struct wlb_search_result result;
	struct wlb_candidate *ranked, *misfits;
	int32_t *places; /* rank_node, rank_gpu, idle_node, idle_gpu, each of `gpus` entries */
};

/* Simulates the plans of the search that can be the best and fills the result, whose memory the caller frees also after
 * an error. Returns -1 where no plan fits, or if out of memory. */
int wlb_search_choose(struct wlb_search *search, struct wlb_search_found *found, struct wlb_error *error);

#endif
