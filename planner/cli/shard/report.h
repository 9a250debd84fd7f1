/* Sums, prints and dumps what `wlb shard` measures over the micro-batches of a stream. */
#ifndef PLANNER_CLI_SHARD_REPORT_H
#define PLANNER_CLI_SHARD_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "libwlb/wlb.h"

/* Sums over the micro-batches sharded so far. Starts zeroed. */
struct wlb_shard_summary {
	const char *strategy; /* asked for */
	int32_t ranks;
	int64_t micro_batches;
	int64_t per_document; /* micro-batches that were sharded per document */
	int64_t documents, tokens, shards;
	int64_t token_spread_max;                       /* fullest rank - emptiest rank, tokens */
	double work_imbalance_mean, work_imbalance_max; /* heaviest rank x ranks / all, FLOPs */
	double attention_s;                             /* one layer forward, the slowest rank of each, summed */
};

/* Adds one micro-batch. */
void wlb_shard_summary_add(struct wlb_shard_summary *summary, const struct wlb_shards *shards,
                           const struct wlb_model *model, const struct wlb_kernel_time *time);

/* The summary as an object; returns NULL if out of memory. */
json_t *wlb_shard_json(const struct wlb_shard_summary *summary);

/* Prints the table. Returns -1 if out of memory. */
int wlb_shard_print(const struct wlb_shard_summary *summary);

/* Prints the ranks of a micro-batch as bars of their work, with their tokens. */
void wlb_shard_print_ranks(const struct wlb_shards *shards, const struct wlb_model *model);

/* Writes lines "micro_batch rank document_index start length key_start keys"; the header is the line with these names.
 * documents[i] is document i of the micro-batch, with its index in the list. */
void wlb_shard_dump_header(FILE *out);
void wlb_shard_dump(FILE *out, int64_t micro_batch, const struct wlb_shards *shards, const struct wlb_span *documents);

#endif
