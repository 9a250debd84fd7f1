/*
 * The part of one micro-batch that one rank works on. Documents are laid end to end, and libwlb shards them over the
 * context-parallel ranks; each context-parallel rank has `rows` rows, which its tensor-parallel ranks divide in equal
 * parts where an operation does not need all rows (sequence parallelism). The loader (worker/load) makes it, the model
 * uses it.
 */
#ifndef WORKER_MODEL_MICRO_BATCH_H
#define WORKER_MODEL_MICRO_BATCH_H

#include <stdint.h>

#include "kernels/ops.h"

struct wlb_micro_batch {
	int64_t tokens;   /* of its documents, on all context-parallel ranks; 0: it is empty, and no rank computes or
	                     sends anything */
	int64_t rows;     /* of each context-parallel rank: the most that one has, rounded up to a multiple of tp */
	int64_t own_rows; /* the first own_rows rows hold this rank's tokens; the others are padding: id 0, target -1,
	                     position 0, in no segment */
	/* device memory */
	const int32_t *ids;       /* [rows] */
	const int32_t *targets;   /* [rows] */
	const int32_t *positions; /* [rows] in their document */
	/* Context parallelism; NULL where cp is 1, when the keys are the rank's own rows. A row is a token's keys and
	 * values. */
	const int32_t *from_ranks;    /* [tokens]: row of all ranks' [cp, rows] of each token, in document order */
	const int32_t *to_ranks;      /* [cp, rows]: token whose gradient goes there; -1: padding */
	struct wlb_segments segments; /* queries are this rank's rows; keys are tokens in document order */
	/* Host memory: a copy of targets, valid until the loader's next step is taken. */
	const int32_t *targets_host;
	double work; /* predicted: FLOPs of this rank's rows in a forward pass of the whole model */
};

#endif
