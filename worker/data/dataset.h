/*
 * Megatron-LM's indexed dataset: PREFIX.bin (token ids) and PREFIX.idx (lengths, offsets, documents).
 * Format: megatron/core/datasets/indexed_dataset.py, version 1, magic "MMIDIDX\0\0".
 */
#ifndef WLB_DATASET_H
#define WLB_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_dataset; /* both files mapped read-only */

/* Every field of .idx is checked against the sizes of both files, so that no later read can leave the
 * mapping. -1 style: NULL with file, field, value and rule. */
struct wlb_dataset *wlb_dataset_open(const char *prefix, struct wlb_error *error);
void wlb_dataset_close(struct wlb_dataset *dataset); /* NULL allowed */

int64_t wlb_dataset_documents(const struct wlb_dataset *dataset);
int64_t wlb_dataset_tokens(const struct wlb_dataset *dataset);
int64_t wlb_dataset_length(const struct wlb_dataset *dataset, int64_t document); /* tokens */
/* Copies tokens [start, start + count) of the document as int32; ids above 2^31 - 1 do not occur. */
void wlb_dataset_read(const struct wlb_dataset *dataset, int64_t document, int64_t start, int64_t count,
                      int32_t *out);
/* Largest token id of the whole dataset (one pass over the file). */
int64_t wlb_dataset_max_token(const struct wlb_dataset *dataset);

#endif
