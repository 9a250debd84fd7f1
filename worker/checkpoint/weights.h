/* Finds which file of a folder holds which block of which tensor, and reads the blocks. */
#ifndef WORKER_CHECKPOINT_WEIGHTS_H
#define WORKER_CHECKPOINT_WEIGHTS_H

#include <stdbool.h>

#include "worker/checkpoint/safetensors.h"

/* Where a range of a block of a tensor, of one element at least, is stored. */
struct wlb_stored_block {
	char *name; /* of the tensor */
	int file;   /* index into wlb_weights.files, or into its indexes where it has these */
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

/* A list of the files of a group of shards: shard_index.h. */
struct wlb_weights_index {
	int shards;
	int64_t bytes;
	uint64_t checksum; /* of its bytes, as elements of one byte: common/element_checksum.h */
};

/* Either files, of which each block is in one, or the indexes of groups of files: the blocks are those of whole groups
 * then, and there are no files. */
struct wlb_weights {
	struct wlb_weights_file *files;
	int file_count;
	size_t file_capacity;
	struct wlb_stored_block *blocks; /* by name, then row_start, col_start and the range's begin */
	int block_count;
	size_t block_capacity;
	struct wlb_weights_index *indexes;
	int index_count;
	size_t index_capacity;
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
/* Returns the number of files, or of those that the indexes list. */
int wlb_weights_shards(const struct wlb_weights *weights);
/* Sorts the blocks, and sets the elements of the files. */
void wlb_weights_sort(struct wlb_weights *weights);
/* The same; checks that the blocks of each tensor have one shape and hold each element once: bands of rows, one below
 * the other, each cut into columns or whole, and the ranges of a block one after the other. */
int wlb_weights_finish(struct wlb_weights *weights, struct wlb_error *error);
/* Appends the blocks of a sorted group of files to those of `whole`, as blocks of its index `index`. The ranges of a
 * block that follow each other in the group become one. */
int wlb_weights_add_group(struct wlb_weights *whole, int index, const struct wlb_weights *group,
                          struct wlb_error *error);
/* Returns -1 where the sorted group does not hold what `whole`, which is finished, says of its index `index`. */
int wlb_weights_check_group(const struct wlb_weights *whole, int index, const struct wlb_weights *group,
                            struct wlb_error *error);
/* Returns 0 where each of the files [begin, end) exists with the size in the manifest, and its header lists the blocks
 * that the manifest says, and their checksums; -1 where one does not, WLB_UNREADABLE (input.h) where that cannot be
 * known now. No tensor is read. */
int wlb_weights_check_files(struct wlb_weights *weights, int begin, int end, struct wlb_error *error);
/* Reads the data of one of `shares` parts of the weights, of about equal size. Returns 0 where they have the checksums
 * in the shards or the digests in the manifest, WLB_DAMAGED (safetensors.h) where not, -1 where a file is not there or
 * another, WLB_UNREADABLE (input.h) where it cannot be read now. */
int wlb_weights_verify(struct wlb_weights *weights, int share, int shares, struct wlb_error *error);

/* Returns -1 where there is no tensor of a part's name and shape. */
int wlb_weights_check_parts(const struct wlb_weights *weights, const struct wlb_tensor_part *parts, int count,
                            struct wlb_error *error);
/* Whether a block of this file or index overlaps a part. */
bool wlb_weights_overlaps(const struct wlb_weights *weights, int file, const struct wlb_tensor_part *parts, int count);
/* Fills the parts from all blocks that overlap them: all of it where the blocks are those of whole tensors. One file is
 * open at a time: there may be more of them than a process may have open. */
int wlb_weights_read(struct wlb_weights *weights, const struct wlb_tensor_part *parts, int count,
                     struct wlb_error *error);

#endif
