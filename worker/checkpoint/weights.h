/* Finds which file of a folder holds which block of which tensor, and reads the blocks. */
#ifndef WORKER_CHECKPOINT_WEIGHTS_H
#define WORKER_CHECKPOINT_WEIGHTS_H

#include <stdbool.h>

#include "worker/checkpoint/safetensors.h"

/* Where a range of a block of a tensor, of one element at least, is stored. */
struct wlb_stored_block {
	char *name; /* of the tensor */
	int file;   /* index into wlb_weights.files */
	struct wlb_tensor_block block;
	struct wlb_element_range range;
	uint64_t digest; /* of its data, common/word_digest.h, in version 2 of the format; 0: unknown */
};

struct wlb_weights_file {
	char *path;
	int64_t bytes; /* according to the manifest; -1: unknown */
	bool has_checksum;
	uint64_t checksum;      /* of all data, common/element_checksum.h */
	int64_t elements;       /* of all blocks */
	uint64_t read_checksum; /* of what wlb_weights_read has read, without copies */
	int64_t read_elements;
	struct wlb_safetensors *opened; /* NULL until first needed */
};

struct wlb_weights {
	struct wlb_weights_file *files;
	int file_count;
	size_t file_capacity;
	struct wlb_stored_block *blocks; /* by name, then row_start, col_start and the range's begin */
	int block_count;
	size_t block_capacity;
};

void wlb_weights_free(struct wlb_weights *weights); /* frees the members; `weights` may be zeroed */

/* Appends FOLDER/NAME, without a checksum. Returns its index, or -1. */
int wlb_weights_add_file(struct wlb_weights *weights, const char *folder, const char *name, int64_t bytes,
                         struct wlb_error *error);
/* Appends a block; its name is copied. */
int wlb_weights_add_block(struct wlb_weights *weights, const struct wlb_stored_block *block, struct wlb_error *error);
/* Reads the header of every file added and appends the blocks of all tensors in it; tensors and blocks without elements
 * are skipped.
 */
int wlb_weights_scan(struct wlb_weights *weights, struct wlb_error *error);
/* Sets the elements of the files, sorts the blocks and checks that those of each tensor have one shape and hold each
 * element once: bands of rows, one below the other, each cut into columns or whole, and the ranges of a block one after
 * the other. */
int wlb_weights_finish(struct wlb_weights *weights, struct wlb_error *error);
/* Returns 0 where every file exists with the size in the manifest, and its header lists the blocks that the manifest
 * says, and their checksums; -1 where one does not, WLB_UNREADABLE (input.h) where that cannot be known now. No tensor
 * is read. */
int wlb_weights_check_files(struct wlb_weights *weights, struct wlb_error *error);
/* Reads the data of one of `shares` parts of the weights, of about equal size. Returns 0 where they have the checksums
 * in the shards or the digests in the manifest, WLB_DAMAGED (safetensors.h) where not, -1 where a file is not there or
 * another, WLB_UNREADABLE (input.h) where it cannot be read now. */
int wlb_weights_verify(struct wlb_weights *weights, int share, int shares, struct wlb_error *error);

/* Fills the parts from all blocks that overlap them. One file is open at a time: there may be more of them than a
 * process may have open. */
int wlb_weights_read(struct wlb_weights *weights, const struct wlb_tensor_part *parts, int count,
                     struct wlb_error *error);

#endif
