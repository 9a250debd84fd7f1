/* The micro-batch of one context-parallel rank, made here from libwlb's shards without the loader. */
#ifndef TESTS_UNIT_WORKER_TINY_BATCH_H
#define TESTS_UNIT_WORKER_TINY_BATCH_H

#include "worker/model/micro_batch.h"

enum { TINY_MAX_LENGTH = 24 };

/* Tokens of a document: one more than its inputs. */
struct tiny_document {
	int32_t length; /* inputs */
	int32_t tokens[TINY_MAX_LENGTH + 1];
};

struct tiny_batch {
	struct wlb_micro_batch batch;
	struct wlb_device *device;
	void *memory[6]; /* device memory of the batch's arrays */
};

/* The share of context-parallel rank `at` of `cp`; rows rounded up to a multiple of tp. Ends the test on failure. */
struct tiny_batch tiny_batch_new(struct wlb_device *device, const struct tiny_document *documents, int count,
                                 enum wlb_sharding sharding, int tp, int cp, int at);
/* Has the rows in halves, as wlb_second_half. The batch must be on the CPU. */
void tiny_batch_halve(struct tiny_batch *batch, int tp, int64_t least);
void tiny_batch_free(struct tiny_batch *batch);

#endif
