/*
 * Predicts the seconds that a document takes on the device; micro-batches and replicas should have equal shares of
 * them. They are not proportional to the FLOPs of the model, since attention achieves a smaller share of the device's
 * speed than matrix products, and short documents fill its tiles only in part.
 *
 * The speeds are those of a machine file (--machine), else compiled in, and not measured in the run: the assignment
 * depends on them, and a run must be repeatable bit by bit. The packer always uses the compiled-in ones with tp 1, on
 * every device and layout: which documents enter a step must depend on neither.
 */
#ifndef WORKER_LOAD_DOCUMENT_TIME_H
#define WORKER_LOAD_DOCUMENT_TIME_H

#include <stdint.h>

#include "libwlb/wlb.h"

enum { WLB_DOCUMENT_POINTS = 15 };

/* The speeds of a machine, for a model of which a rank has 1 / tp. It holds no pointers: rank 0 makes it and sends it
 * to all ranks, because the logarithms in it differ between kinds of processors. */
struct wlb_document_speeds {
	int measured;                       /* 0: the others are not set, the compiled-in speeds are used */
	double layer_token_s, head_token_s; /* one token forward and backward, without attention */
	double key_s;                       /* of one layer: wlb_machine_key_s */
	double tokens[WLB_DOCUMENT_POINTS]; /* of queries and of keys */
	/* [queries * WLB_DOCUMENT_POINTS + keys] attention of one layer, forward and backward; 0 where there are fewer
	 * keys than queries */
	double attention_s[WLB_DOCUMENT_POINTS * WLB_DOCUMENT_POINTS];
};

/* Sets the speeds but key_s. `rows`: the mean number of tokens of a micro-batch on a rank, at least 1. */
void wlb_document_speeds_of(const struct wlb_machine *machine, const struct wlb_model *model, int32_t tp, double rows,
                            struct wlb_document_speeds *speeds);

struct wlb_document_time {
	struct wlb_kernel_time kernels; /* one layer; for adaptive sharding too */
	double layers;
	double head_token_s;               /* one token through the head */
	double token_factor;               /* on the times of tokens, for those of the backward pass */
	double attention_factor;           /* the same, attention */
	struct wlb_document_speeds speeds; /* the curve of `kernels` points into it */
};

/* Sets the times of the CPU device, with the layers split `tp` ways. */
void wlb_document_time_init(struct wlb_document_time *time, const struct wlb_model *model, int32_t tp);

/* Sets the times of measured speeds. `time` must not be moved or copied. Returns -1 with the value and the rule where
 * the speeds are not ones that wlb_document_speeds_of makes. */
int wlb_document_time_measured(struct wlb_document_time *time, const struct wlb_model *model,
                               const struct wlb_document_speeds *speeds, struct wlb_error *error);

/* Returns the seconds of a document of `tokens` tokens, 1 to 2^30, forward and backward through the whole model. `time`
 * is a struct wlb_document_time. The result rises with tokens, as wlb_packer_options.work must. */
double wlb_document_s(const void *time, int64_t tokens);

/* Returns the seconds of a micro-batch on one rank of a pipeline of `stages` stages, forward and backward: of rank
 * `rank`'s shards, with `rows` rows, in an equal share of the layers, and in the head where the stage has it. */
double wlb_shards_time_s(const struct wlb_document_time *time, const struct wlb_shards *shards, int32_t rank,
                         int64_t rows, int32_t stages, int has_head);

#endif
