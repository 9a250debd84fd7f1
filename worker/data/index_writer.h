/*
 * Writes a dataset that dataset.h can read: PREFIX.bin and PREFIX.idx of uint16 or int32 tokens, byte for byte as
 * Megatron-LM's IndexedDatasetBuilder does, PREFIX.facts.json, which says by which tokenizer it was made, and, of
 * conversations, PREFIX.loss_mask, a byte for each token of PREFIX.bin: 1 where it counts in the loss, 0 where not. All
 * are written under temporary names (temporary.h) and renamed in commit, .idx last: a process that opens the prefix
 * finds the old dataset, none, or the new one, never a mixture. Meanwhile the old files are PREFIX.bin.replaced and so
 * on, and are put back where a file cannot be renamed. The lengths of the sequences are in a file as well until then,
 * so that memory does not grow with the dataset.
 */
#ifndef WORKER_DATA_INDEX_WRITER_H
#define WORKER_DATA_INDEX_WRITER_H

#include <stdint.h>

#include "common/index_format.h"
#include "libwlb/wlb.h"

struct wlb_index_writer;

struct wlb_index_written {
	int64_t documents;
	int64_t sequences;
	int64_t tokens;
};

/* `dtype` is WLB_INDEX_UINT16 or WLB_INDEX_INT32. */
struct wlb_index_writer *wlb_index_writer_new(const char *prefix, enum wlb_index_dtype dtype, struct wlb_error *error);
/* The same for a build that can go on after its process has ended: continues what wlb_index_writer_leave() or a killed
 * process has left, where `written` was synced; zero: begins anew. `has_mask`: each document is added with a mask. NULL
 * where the files are another process's or are not those that were written. */
struct wlb_index_writer *wlb_index_writer_resume(const char *prefix, enum wlb_index_dtype dtype, int has_mask,
                                                 const struct wlb_index_written *written, struct wlb_error *error);
/* Appends one document of so many sequences, 0 or more, of lengths[sequences] tokens each; the tokens lie one behind
 * the other and must fit `dtype`. A document has at most 2^31 - 1 tokens. */
int wlb_index_writer_add(struct wlb_index_writer *writer, const int32_t *tokens, const int32_t *lengths,
                         int32_t sequences, struct wlb_error *error);
/* Appends the mask of the document that is added next: of each of its tokens 1 or 0. For a writer that has masks. */
int wlb_index_writer_add_mask(struct wlb_index_writer *writer, const uint8_t *mask, size_t tokens,
                              struct wlb_error *error);
/* What was added. */
const struct wlb_index_written *wlb_index_writer_written(const struct wlb_index_writer *writer);
/* Syncs and renames all files; `facts` is the content of PREFIX.facts.json. On -1 the old dataset is there, or the
 * message says where, except where only the folder could not be synced: then the new one is. */
int wlb_index_writer_commit(struct wlb_index_writer *writer, const char *facts, struct wlb_error *error);
/* Makes what was added durable. Not after wlb_index_writer_commit(). */
int wlb_index_writer_sync(struct wlb_index_writer *writer, struct wlb_error *error);
/* Leaves what was not committed for wlb_index_writer_resume(), and frees the writer. Returns 1; 0 where a commit has
 * already renamed the tokens: nothing is left or freed. */
int wlb_index_writer_leave(struct wlb_index_writer *writer);
/* Frees it, and removes what was not committed. NULL allowed. */
void wlb_index_writer_free(struct wlb_index_writer *writer);

#endif
