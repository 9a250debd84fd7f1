/*
 * The communication of sequence parallelism (Korthikanti et al. 2022): a tensor-parallel rank holds a share of the
 * rows, and a matrix needs all rows. Rows are gathered before a matrix that is cut by its outputs, and summed and
 * scattered after a matrix that is cut by its inputs. Where tp is 1 nothing is copied.
 *
 * n rows of the micro-batch, h hidden size. The functions return -1 where a collective failed.
 */
#ifndef WORKER_MODEL_TENSOR_PARALLEL_H
#define WORKER_MODEL_TENSOR_PARALLEL_H

#include "worker/model/activations.h"

/* *all = every rank's x[n / tp, h], in rank order: [n, h]. It is valid until the next call. */
int wlb_tp_gather(struct wlb_transformer *transformer, const void *x, int64_t n, const void **all,
                  struct wlb_error *error);

/* out[n / tp, h] = the rank's rows of the sum of every rank's addend[n, h]. Where tp is 1, addend must be out. */
int wlb_tp_scatter(struct wlb_transformer *transformer, void *out, const void *addend, int64_t n,
                   struct wlb_error *error);

/* out[n / tp, h] = residual[n / tp, h] + the rank's rows of the sum of every rank's x[n, its width] W^T */
int wlb_tp_linear_onto(struct wlb_transformer *transformer, void *out, const void *residual, const void *x, int tensor,
                       int64_t n, struct wlb_error *error);

#endif
