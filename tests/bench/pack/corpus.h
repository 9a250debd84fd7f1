/* The workload that packing is judged by: a 7B class model, and the documents of wlb_lengths in global batches. */
#ifndef WLB_BENCH_CORPUS_H
#define WLB_BENCH_CORPUS_H

#include "libwlb/wlb.h"

/* hidden 4096, 32 layers, 32 heads, intermediate 11008: a document's attention outweighs the rest of its work
 * from 49,400 tokens on. */
extern const struct wlb_model corpus_model;

/* SplitMix64. */
uint64_t corpus_random(uint64_t *state);

/* Starts zeroed but for the lengths. */
struct corpus {
	struct wlb_lengths lengths;
	struct wlb_span left; /* of the document that did not fit the last batch */
	struct wlb_span *batch;
	size_t capacity;
};

/* The next global batch, in corpus->batch until the next call: documents, cut at seq_length, until the next would
 * exceed max_tokens. Gives their number. Aborts without memory. */
size_t corpus_next(struct corpus *corpus, int64_t seq_length, int64_t max_tokens);
void corpus_free(struct corpus *corpus);

#endif
