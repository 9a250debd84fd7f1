/*
 * Decides on which of the cp x dp ranks, and in which micro-batch, each span of a step runs with dynamic packing: as
 * wlb_dynamic_cp_by_work places it, by predicted seconds. Where that finds no place for a span, or a rank would
 * exchange more keys than memory is reserved for, as happens with few tokens on many ranks, each span of the
 * step is on one of the groups of wlb_loader_key_ranks ranks. Equal inputs give equal places: every rank computes those
 * of all.
 */
#ifndef WORKER_LOAD_PLACES_H
#define WORKER_LOAD_PLACES_H

#include <stddef.h>
#include <stdint.h>

#include "worker/load/document_time.h"
#include "worker/load/options.h"

struct wlb_placer {
	struct wlb_place *places; /* of each span of the last step */
	/* 1: each span of that step is on a group of wlb_loader_key_ranks ranks, where all spans of the group together
	 * are to be divided: each by itself could leave a rank with more tokens than it has space for. */
	int in_groups;

	struct wlb_loader_options options;
	const struct wlb_document_time *time;
	struct wlb_balancer *balancer; /* of groups */
	struct wlb_load *loads;        /* [ranks * micro_batches], as is the next */
	int64_t *exchanged;            /* rows of keys that each rank exchanges in each micro-batch */
	int32_t *bin_of;               /* [spans], with its capacity, as places */
	size_t places_capacity, bin_of_capacity;
};

/* The options must have passed wlb_loader_check; the caller owns `time`, which must outlive the placer. Returns -1 if
 * out of memory. A zeroed placer may be freed. */
int wlb_placer_init(struct wlb_placer *placer, const struct wlb_loader_options *options,
                    const struct wlb_document_time *time, struct wlb_error *error);
void wlb_placer_free(struct wlb_placer *placer);

/* Places `count` spans of tokens[] tokens in `micro_batches` micro-batches, as many as wlb_loader_step_bins / dp of the
 * step's windows. Returns -1 only if out of memory: every step that the options allow fits. */
int wlb_placer_place(struct wlb_placer *placer, const int64_t *tokens, size_t count, int32_t micro_batches,
                     struct wlb_error *error);

#endif
