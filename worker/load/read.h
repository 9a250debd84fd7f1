/* Reads tokens from the dataset into the rows of a micro-batch. */
#ifndef WORKER_LOAD_READ_H
#define WORKER_LOAD_READ_H

#include "worker/data/dataset.h"
#include "worker/load/rows.h"

/* Fills ids and targets of micro-batch `number`, as laid out from `shards` for rank `rank`; document d of the shards is
 * spans[d]. A target is the token after the input, also where a document was cut. Returns -1 where the dataset cannot
 * be read, lacks a span, or has a token id that is not below vocab_size. */
int wlb_read_rows(struct wlb_rows *rows, int32_t number, const struct wlb_shards *shards, int32_t rank,
                  const struct wlb_span *spans, const struct wlb_dataset *dataset, int64_t vocab_size,
                  struct wlb_error *error);

#endif
