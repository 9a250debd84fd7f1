/* The workload that packing is judged by: a 7B class model, and the documents of wlb_lengths in global batches. */
#ifndef TESTS_BENCH_PACK_CORPUS_H
#define TESTS_BENCH_PACK_CORPUS_H

#include "planner/batches.h"
#include "planner/model_class.h"

#define corpus_model wlb_model_7b

/* SplitMix64. */
uint64_t corpus_random(uint64_t *state);

struct workload {
	int64_t steps;
	uint64_t seed;
	double tail; /* of wlb_lengths_init */
	int64_t seq_length;
};

/* The mean over steps, and what one step in a hundred exceeds. */
struct imbalances {
	double mean;
	double p99;
};

/* Sorts `each`, the imbalance of each of `steps` steps. */
struct imbalances corpus_imbalances(double *each, size_t steps);

/* Starts zeroed but for the lengths. */
struct corpus {
	struct wlb_lengths lengths;
	struct wlb_batches batches;
	struct wlb_span *batch; /* of `batches` */
};

/* The next global batch, in corpus->batch until the next call; gives the number of its spans. Aborts if out of memory.
 */
size_t corpus_next(struct corpus *corpus, int64_t seq_length, int64_t max_tokens);
void corpus_free(struct corpus *corpus);

#endif
