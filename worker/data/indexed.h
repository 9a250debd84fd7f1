/*
 * Reads one of Megatron-LM's indexed datasets: PREFIX.bin (token ids) and PREFIX.idx (lengths, offsets, documents).
 * Format: megatron/core/datasets/indexed_dataset.py, version 1, magic "MMIDIDX\0\0".
 */
#ifndef WORKER_DATA_INDEXED_H
#define WORKER_DATA_INDEXED_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* Both files are kept open: .idx is mapped, .bin is read with pread, so that a .bin that shrinks or a disk that fails
 * during a run is an error that names the file and never a SIGBUS. An .idx that is truncated in place while mapped can
 * cause a SIGBUS; `wlb data build` replaces files by rename, which does not change open files. */
struct wlb_indexed;

/* Opens PREFIX.idx and PREFIX.bin and checks the header of .idx against its size, so that no read of the index goes
 * beyond the mapping. Returns 0; -1 with file, field, value and rule where a check fails, or where a file is missing or
 * this user may not read it; WLB_UNREADABLE (input.h) where it cannot be read now. *indexed is NULL then. */
int wlb_indexed_open(const char *prefix, struct wlb_indexed **indexed, struct wlb_error *error);
void wlb_indexed_close(struct wlb_indexed *indexed); /* NULL allowed */

/* The three checks of the arrays, in the order in which one process makes them. Documents are not to be read before all
 * `shares` equal shares of each array, from 0 on, have passed. Each returns -1 with file, field, value and rule of the
 * first error of the share. */
/* Lengths and pointers, against the size of .bin. *has_gaps: 1 where these sequences do not lie one behind the other,
 * or not behind the one before the share. */
int wlb_indexed_check_sequences(const struct wlb_indexed *indexed, int share, int shares, int *has_gaps,
                                struct wlb_error *error);
/* The end of .bin, for an index in which no share has gaps. */
int wlb_indexed_check_end(const struct wlb_indexed *indexed, struct wlb_error *error);
int wlb_indexed_check_documents(const struct wlb_indexed *indexed, int share, int shares, struct wlb_error *error);

/* From now on only the sequences [from, to) are there: a document that has others too has only these, and one that has
 * none of them has no tokens. Sets *first and *end to the documents that have some, as numbers in the file. */
void wlb_indexed_narrow(struct wlb_indexed *indexed, int64_t from, int64_t to, int64_t *first, int64_t *end);

int64_t wlb_indexed_documents(const struct wlb_indexed *indexed); /* of the file */
int64_t wlb_indexed_sequences(const struct wlb_indexed *indexed); /* of the file */
/* Adds the tokens of the sequences that are there, of an index that has been checked. -1: they are 2^63 or more. */
int64_t wlb_indexed_tokens(const struct wlb_indexed *indexed, struct wlb_error *error);
/* Whether some of its tokens may not count in the loss. */
int wlb_indexed_has_loss_mask(const struct wlb_indexed *indexed);
/* Makes the digest, never 0, of the element type, the lengths, the pointers and the documents that the index has. */
void wlb_indexed_digest_index(struct wlb_indexed *indexed);
/* Returns that digest, 0 where it was not made. */
uint64_t wlb_indexed_index_digest(const struct wlb_indexed *indexed);
/* Makes the digest of the tokens: of the size of .bin and of 1 MiB of it, in windows all over the file, at bytes that
 * follow from the digest of the index; a .bin of up to 1 MiB is in it whole. The loss mask is in it in the same way.
 * Returns 0, -1 where the file ends before, WLB_UNREADABLE where it cannot be read now. */
int wlb_indexed_digest_tokens(struct wlb_indexed *indexed, struct wlb_error *error);
/* Returns that digest, 0 where it was not made. */
uint64_t wlb_indexed_token_digest(const struct wlb_indexed *indexed);
int64_t wlb_indexed_length(const struct wlb_indexed *indexed, int64_t document); /* tokens */
/* Returns the path of the .bin file, for messages; the dataset owns it. */
const char *wlb_indexed_path(const struct wlb_indexed *indexed);
/* Copies tokens [start, start + count) of the document, which must lie within it, as int32. Returns -1 where a
 * token id is negative or above 2^31 - 1 or the file ends before, WLB_UNREADABLE where it cannot be read now. */
int wlb_indexed_read(const struct wlb_indexed *indexed, int64_t document, int64_t start, int64_t count, int32_t *out,
                     struct wlb_error *error);
/* Sets those of targets[count], tokens [start, start + count) of the document, to -1 that do not count in the loss;
 * NULL: only counts. Returns how many count; fails as wlb_loss_mask_apply. */
int64_t wlb_indexed_mask(const struct wlb_indexed *indexed, int64_t document, int64_t start, int64_t count,
                         int32_t *targets, struct wlb_error *error);
/* Reads the documents [first, end) and returns the largest token id; 0 where they have no tokens. It fails as
 * wlb_indexed_read. */
int64_t wlb_indexed_max_token(const struct wlb_indexed *indexed, int64_t first, int64_t end, struct wlb_error *error);

#endif
