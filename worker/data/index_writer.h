/*
 * Writes a dataset that dataset.h can read: PREFIX.bin and PREFIX.idx of uint16 tokens, one sequence a document. Both
 * files are written under temporary names (temporary.h) and renamed in commit, .idx last: a process that opens the
 * prefix finds the old dataset, none, or the new one, never a mixture. Meanwhile the old files are PREFIX.bin.replaced
 * and PREFIX.idx.replaced, and are put back where a file cannot be renamed.
 */
#ifndef WORKER_DATA_INDEX_WRITER_H
#define WORKER_DATA_INDEX_WRITER_H

#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_index_writer;

struct wlb_index_writer *wlb_index_writer_new(const char *prefix, struct wlb_error *error);
/* Appends one document; at most 2^31 - 1 tokens. */
int wlb_index_writer_add(struct wlb_index_writer *writer, const uint16_t *tokens, int64_t count,
                         struct wlb_error *error);
int64_t wlb_index_writer_documents(const struct wlb_index_writer *writer);
int64_t wlb_index_writer_tokens(const struct wlb_index_writer *writer);
/* Syncs and renames both files. On -1 the old dataset is there, or the message says where, except where only the folder
 * could not be synced: then the new one is. */
int wlb_index_writer_commit(struct wlb_index_writer *writer, struct wlb_error *error);
/* Frees it, and removes what was not committed. NULL allowed. */
void wlb_index_writer_free(struct wlb_index_writer *writer);

#endif
