/* The results of a step, as JSON for the metrics file and the record, and as a line of text on standard output. */
#ifndef WORKER_RECORD_METRICS_H
#define WORKER_RECORD_METRICS_H

#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/record/step_parts.h"

struct wlb_step_facts {
	int64_t step;
	double loss;      /* mean cross-entropy of the tokens that count, in nats a token; 0 where none does */
	double grad_norm; /* before clipping */
	double lr;
	int64_t tokens;      /* trained in the step, by all ranks */
	int64_t loss_tokens; /* of these, those whose loss counts */
	int32_t windows;     /* the global batch, in windows of seq_length tokens */
	int is_in_ramp;      /* 1: these are fewer than the run's global batch */
	int documents;       /* pieces of documents */
	int64_t held_tokens; /* read and kept by the packer for a later step */
	double step_time_s;
	double time_s[WLB_STEP_PARTS]; /* the parts of the step's time, mean over ranks */
	/* Heaviest rank x ranks / all ranks: of the predicted work, and of the measured seconds of computation. */
	double predicted_imbalance;
	double imbalance;
	int64_t memory_bytes; /* the most that a rank has allocated on its device; 0: not known */
	int is_skipped;       /* 1: it changed neither weights nor moments */
	int ranks;
	const double *rank_work; /* [ranks] by place in the layout: predicted FLOPs of the forward pass */
	const double *rank_compute_s;
};

/* Returns 0 of a step without a time. */
double wlb_step_tokens_per_s(const struct wlb_step_facts *facts);

/* Returns one JSON object without line end, which the caller frees. with_ranks: with the numbers of every rank; these
 * and steps in a ramp have the global batch. Returns NULL with the reason on failure. */
char *wlb_step_json(const struct wlb_step_facts *facts, int with_ranks, struct wlb_error *error);

/* The loss on documents that are not trained, of the weights after a step. */
struct wlb_evaluation_facts {
	int64_t step;
	double loss;    /* mean cross-entropy, in nats a token */
	int64_t tokens; /* whose loss counts */
	double duration_s;
};

/* {"step":20,"eval_loss":2.31,"eval_tokens":81920,"eval_time_s":1.2} without line end, which the caller frees; a loss
 * that is not finite is null. Returns NULL with the reason on failure. */
char *wlb_evaluation_json(const struct wlb_evaluation_facts *facts, struct wlb_error *error);
/* "evaluation after step 20 | loss 2.3100 | ..." on standard output, at once. */
void wlb_evaluation_print(const struct wlb_evaluation_facts *facts);

struct wlb_metrics;

/* Opens the file for appending. Returns NULL with errno set on failure. */
struct wlb_metrics *wlb_metrics_open(const char *path, struct wlb_error *error);
/* Appends one line, whole or not at all. */
int wlb_metrics_write(struct wlb_metrics *metrics, const char *json, struct wlb_error *error);
void wlb_metrics_close(struct wlb_metrics *metrics); /* NULL allowed */

/* "step 10/120 | loss 2.3100 | ..." on standard output, at once. */
void wlb_metrics_print(const struct wlb_step_facts *facts, int64_t train_iters);

#endif
