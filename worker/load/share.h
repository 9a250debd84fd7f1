/*
 * A rank's share of a sharded micro-batch: its rows, and the keys of its documents, whole, which it exchanges with the
 * other ranks of each. The micro-batch has keys of all documents in their order; a rank's keys are those of its own
 * documents, in the same order.
 */
#ifndef WORKER_LOAD_SHARE_H
#define WORKER_LOAD_SHARE_H

#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/model/micro_batch.h"

/* Documents that the same ranks have, which follow each other. */
struct wlb_key_part {
	struct wlb_exchange exchange;
	int32_t first_rank, ranks;
	int64_t first_token, tokens; /* among those of the micro-batch */
	int64_t first_key;           /* of first_token, among the keys of this rank */
};

struct wlb_share {
	int32_t rank;
	int64_t rows, own_rows; /* as in struct wlb_micro_batch, and so is the next, which prepare.c sets */
	int64_t second_half;
	int64_t keys;
	int32_t part_count;
	struct wlb_key_part parts[WLB_EXCHANGES_MAX];
	int has_exchanges;
	int64_t exchanged; /* rows, of all ranks in all exchanges */
};

/* The number of the group of `ranks` of all cp x dp ranks in key_groups of struct wlb_groups. */
int32_t wlb_share_group(int32_t ranks, int32_t all, int32_t cp);

/* The share of rank `rank` of a group, whose ranks all have parts of all documents and equally many rows. */
struct wlb_share wlb_share_of_all(const struct wlb_shards *shards, int32_t group, int32_t rank, int32_t tp);

/* The share where document i of the micro-batch, of tokens[i] tokens, is on the ranks places[i], from which
 * wlb_shard_places has made the shards. The documents are in descending order of their ranks, then in the order of
 * the first. */
struct wlb_share wlb_share_of_places(const struct wlb_shards *shards, const int64_t *tokens,
                                     const struct wlb_place *places, size_t count, int32_t rank,
                                     const struct wlb_layout *layout);

/* Returns the place of a token of the micro-batch, which is of the rank's documents, among the rank's keys. */
int64_t wlb_share_key(const struct wlb_share *share, int64_t token);

/* Fills from_ranks[keys] and to_ranks[exchanged] of struct wlb_micro_batch; each is the other's inverse. */
void wlb_share_maps(const struct wlb_share *share, const struct wlb_shards *shards, int32_t *from, int32_t *to);

#endif
