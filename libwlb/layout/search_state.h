/* The input of the layout search and the plans that it has found so far. */
#ifndef LIBWLB_LAYOUT_SEARCH_STATE_H
#define LIBWLB_LAYOUT_SEARCH_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* The total work of the documents of a step. */
struct wlb_search_work {
	double tokens; /* of a step */
	double pairs;  /* of a query and a key that it attends to, in a step */
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
	struct wlb_search_plan *plans; /* those with the same tp, cp and pp follow each other */
	size_t count, capacity;
	size_t dropped; /* plans that do not fit, beyond those of their layout that a result can have */
};

#endif
