/* The ranks of a run from the coordinator's reply to GET /v1/runs/RUN/ranks, with their places in the layout. */
#ifndef COORDINATOR_WLB_TOP_RANKS_H
#define COORDINATOR_WLB_TOP_RANKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "coordinator/wlb/top/verdicts.h"
#include "libwlb/wlb.h"

struct wlb_top_group {
	char name[16];
	int ranks;
	int64_t entered; /* the sequence number of the last call that the rank has entered */
	int64_t left;    /* and left */
};

/* Times are those of now: the age of the report is added to what it says. */
struct wlb_top_rank {
	int rank;
	int node;                  /* an index into the names of nodes; -1: not known */
	int place;                 /* in the layout; -1: none */
	struct wlb_coordinates at; /* of that place */
	int verdict;               /* the first that names it, an index into the verdicts; -1: none does */
	bool is_reported;          /* else what follows is not known */
	double age_s;
	int64_t step; /* -1: its trainer reports nothing, so that only `process` is known */
	const char *activity;
	double for_s;
	double late_s; /* that it enters calls later than others do, in the mean; 0: not known */
	const char *process;
	const char *call; /* the kind of the call in which it waits; NULL: it waits in none */
	int64_t call_seq;
	int64_t call_bytes;
	double call_for_s;
	const struct wlb_top_group *call_group;
	const struct wlb_top_group *groups; /* [group_count] */
	int group_count;
};

struct wlb_top_ranks {
	struct wlb_top_rank *list; /* [count]; the index of a rank is its number */
	int count;
	int omitted; /* ranks that the reply does not list */
	int reported;
	int64_t last_step;  /* the highest of all ranks */
	const char **nodes; /* [node_count] names, in the order in which ranks fill them */
	int node_count;
	bool has_layout;
	struct wlb_layout layout;
	struct wlb_top_group *groups; /* of all ranks */
	struct wlb_top_verdicts verdicts;
};

/* Reads a reply, whose texts the ranks point to. Returns -1 where it is not of the form of docs/api.md, or if out of
 * memory. wlb_top_ranks_free releases them, also then. */
int wlb_top_ranks_read(const json_t *reply, struct wlb_top_ranks *ranks, struct wlb_error *error);
void wlb_top_ranks_free(struct wlb_top_ranks *ranks);

/* Returns the rank's group of that name; NULL: it has none. */
const struct wlb_top_group *wlb_top_rank_group(const struct wlb_top_rank *rank, const char *name);

/* Returns the name of the rank's node, or "?". */
const char *wlb_top_rank_node(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank);

#endif
