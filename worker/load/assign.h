/*
 * Decides in which micro-batch of which replica each span of a packed step is trained. Equal inputs give equal outputs:
 * every rank computes the same assignment.
 *
 * plain and fixed are baselines, and are assigned as Megatron-LM's sampler does: packed micro-batch j goes to replica j
 * mod dp. For balanced and greedy the spans are assigned again, to micro-batches of equal predicted time, and these are
 * assigned to replicas, the heaviest first, to the replica with the least time (Graham 1969). greedy keeps the packer's
 * micro-batches where the layout has the same number: that is WLB-LLM as published. With dynamic packing a micro-batch
 * is one of all replicas together, and each span has ranks of its own (wlb_placer_place).
 */
#ifndef WORKER_LOAD_ASSIGN_H
#define WORKER_LOAD_ASSIGN_H

#include <stddef.h>
#include <stdint.h>

#include "worker/load/document_time.h"
#include "worker/load/options.h"

/* The index of a micro-batch and its predicted time, for sorting. */
struct wlb_bin_order {
	double seconds;
	int32_t bin;
};

/* A span and its place, for sorting. */
struct wlb_span_place {
	struct wlb_place place;
	size_t span;
};

struct wlb_assigner {
	/* The last step's spans for this rank's replica: those of its micro-batch m are
	 * spans[first[m]] to spans[first[m + 1] - 1], in the packer's order. Micro-batch micro_batches is that of
	 * wlb_assigner_pick. */
	struct wlb_span *spans;
	size_t *first; /* [micro_batches + 2] */
	/* With dynamic packing spans are those of all replicas; places[i] of each, by ranks, most first, and by first
	 * rank. Those of wlb_assigner_pick have none. */
	struct wlb_place *places;

	struct wlb_loader_options options;
	const struct wlb_document_time *time;
	struct wlb_balancer *balancer;
	struct wlb_placer *placer; /* with dynamic packing */
	int in_groups;             /* of the placement of the last step */
	struct wlb_span_place *order_of_places;
	size_t order_of_places_capacity, places_capacity;
	int32_t bins;          /* of the step in progress, at most those of the options */
	int64_t packed_tokens; /* most tokens of a micro-batch of the packer */
	int32_t *replica_of;   /* [bins of the options], as are the next two */
	int32_t *slot_of;      /* which of the replica's micro-batches */
	struct wlb_bin_order *order;
	double *replica_s;     /* [dp] */
	int32_t *replica_bins; /* [dp] */
	/* [spans], each with its capacity */
	size_t spans_capacity;
	int64_t *tokens;
	size_t tokens_capacity;
	int32_t *bin_of;
	size_t bin_of_capacity;
};

/* The options must have passed wlb_loader_check; the caller owns `time`, which must outlive the assigner. A zeroed
 * assigner may be freed. */
int wlb_assigner_init(struct wlb_assigner *assigner, const struct wlb_loader_options *options,
                      const struct wlb_document_time *time, struct wlb_error *error);
void wlb_assigner_free(struct wlb_assigner *assigner);

/* Returns -1 only if out of memory: every step that the options allow fits. */
int wlb_assigner_assign(struct wlb_assigner *assigner, const struct wlb_step *step, struct wlb_error *error);

/* Adds one of the micro-batches that the step was assigned to, of any replica, behind those of this one. Equal turns
 * pick the same micro-batch on every replica, and successive turns others. The step has tokens, and so has the
 * micro-batch. Returns -1 if out of memory. */
int wlb_assigner_pick(struct wlb_assigner *assigner, const struct wlb_step *step, int64_t turn,
                      struct wlb_error *error);

#endif
