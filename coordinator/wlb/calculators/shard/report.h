/* What `wlb shard` measures over the micro-batches of a stream, prints and dumps. */
#ifndef COORDINATOR_WLB_CALCULATORS_SHARD_REPORT_H
#define COORDINATOR_WLB_CALCULATORS_SHARD_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "libwlb/wlb.h"

/* What was measured. Starts zeroed. */
struct wlb_shard_summary {
	const char *strategy; /* asked for */
	int32_t ranks;
	int64_t micro_batches;
	int64_t per_document; /* of them: sharded so */
	int64_t documents, tokens, shards;
	int64_t token_spread_max;                       /* fullest rank - emptiest rank, tokens */
	double work_imbalance_mean, work_imbalance_max; /* heaviest rank x ranks / all, FLOPs */
	double attention_s;                             /* one layer forward, the slowest rank of each, summed */
};

/* Takes in one micro-batch. */
void wlb_shard_summary_add(struct wlb_shard_summary *summary, const struct wlb_shards *shards,
                           const struct wlb_model *model, const struct wlb_kernel_time *time);

/* The summary as an object; returns NULL if out of memory. */
json_t *wlb_shard_json(const struct wlb_shard_summary *summary);

/* The table. Returns -1 if out of memory. */
int wlb_shard_print(const struct wlb_shard_summary *summary);

/* The ranks of a micro-batch as bars of their work, with their tokens. */
void wlb_shard_print_ranks(const struct wlb_shards *shards, const struct wlb_model *model);

/* Lines "micro_batch rank document_index start length key_start keys", after the line that names them. documents[i] is
 * the index in the list of the span that is document i of the micro-batch. */
void wlb_shard_dump_header(FILE *out);
void wlb_shard_dump(FILE *out, int64_t micro_batch, const struct wlb_shards *shards, const struct wlb_span *documents);

#endif
