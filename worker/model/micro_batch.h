/*
 * The part of one micro-batch that one rank works on. Documents are laid end to end, and libwlb shards each over its
 * ranks: the context-parallel ranks of a replica, or as many of all replicas' as it needs. Each has `rows` rows, which
 * its tensor-parallel ranks divide in equal parts where an operation does not need all rows (sequence parallelism). The
 * loader (worker/load) makes it, the model uses it.
 */
#ifndef WORKER_MODEL_MICRO_BATCH_H
#define WORKER_MODEL_MICRO_BATCH_H

#include <stdint.h>
#include <string.h>

#include "kernels/ops.h"

enum { WLB_EXCHANGES_MAX = 22 };

/* Rows whose keys and values the ranks of a group exchange: so many of each rank, padded where it has fewer. */
struct wlb_exchange {
	int32_t group;               /* the number in key_groups of struct wlb_groups */
	int64_t rows;                /* of each rank */
	int64_t own_first, own_rows; /* this rank's, among its rows of the micro-batch */
};

/* Returns where the second half of so many rows begins, of which tp ranks have equal shares, and which are halved where
 * they are at least `least`; 0 where they are in one piece (tensor_parallel.h), as always with `least` 0. */
static inline int64_t wlb_second_half(int64_t rows, int tp, int64_t least)
{
	return tp > 1 && least > 0 && rows >= least ? rows / tp / 2 * tp : 0;
}

/* Divides the segment in which the second half begins, if there is one, so that each is of one half; they are in the
 * order of their queries. Returns their number: list has memory for one more. *first receives how many are of the first
 * half. */
static inline int wlb_halve_segments(struct wlb_segment *list, int count, int64_t second_half, int *first)
{
	int i = 0;
	while (i < count && list[i].q_start + list[i].q_count <= second_half)
		i++;
	*first = i;
	if (i == count || list[i].q_start >= second_half)
		return count;
	int32_t before = (int32_t)second_half - list[i].q_start;
	memmove(list + i + 1, list + i, (size_t)(count - i) * sizeof(*list));
	list[i].k_count -= list[i].q_count - before; /* what the last of its queries sees */
	list[i].q_count = before;
	list[i + 1].q_start += before;
	list[i + 1].q_count -= before;
	list[i + 1].q_offset += before;
	*first = i + 1;
	return count + 1;
}

struct wlb_micro_batch {
	int64_t tokens;   /* of the documents of which this rank has a part, on all their ranks; 0: it is empty, and the
	                     rank computes and sends nothing */
	int64_t rows;     /* of this rank, at least own_rows and a multiple of tp */
	int64_t own_rows; /* the first own_rows rows hold this rank's tokens; the others are padding: id 0, target -1,
	                     position 0, in no segment */
	/* Where rows move in two halves: the first row of the second; 0: they move in one piece. The segments and tiles
	 * of queries of the first half come first, and are so many. */
	int64_t second_half;
	int first_segments, first_query_tiles;
	/* device memory */
	const int32_t *ids;       /* [rows] */
	const int32_t *targets;   /* [rows] */
	const int32_t *positions; /* [rows] in their document */
	/* Context parallelism. Without exchanges the two maps are NULL, and the keys are the rank's own rows. A row is
	 * a token's keys and values. The exchanges' [ranks of the group, rows] lie end to end. */
	int32_t exchange_count;
	struct wlb_exchange exchanges[WLB_EXCHANGES_MAX]; /* in the order of their calls, the same on all ranks */
	const int32_t *from_ranks;    /* [tokens]: row of the exchanges of each token, in document order */
	const int32_t *to_ranks;      /* [rows of the exchanges]: token whose gradient goes there; -1: padding */
	struct wlb_segments segments; /* queries are this rank's rows; keys are tokens in document order */
	/* Host memory: a copy of targets, valid until the loader's next step is taken. */
	const int32_t *targets_host;
	double work; /* predicted: FLOPs of this rank's rows in a forward pass of the whole model */
};

#endif
