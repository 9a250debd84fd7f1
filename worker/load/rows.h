/* Lays out the arrays of a step's micro-batches on one rank, in one block of host memory that is copied to the device
 * as a whole. */
#ifndef WORKER_LOAD_ROWS_H
#define WORKER_LOAD_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/attention_tiles.h"
#include "libwlb/wlb.h"
#include "worker/load/options.h"
#include "worker/load/share.h"
#include "worker/model/micro_batch.h"

/* Where the arrays of a micro-batch begin in the block; shapes as in struct wlb_micro_batch. ids has one element more,
 * so that a document's last target can be read with its inputs. */
struct wlb_row_arrays {
	size_t ids;
	size_t targets;
	size_t positions;
	size_t from_ranks;
	size_t to_ranks;
	size_t segments;
	size_t query_tiles;
	size_t key_tiles;
	size_t readers;
};

struct wlb_rows {
	int32_t *host; /* `used` of `capacity` elements */
	size_t used;
	size_t capacity;
	int is_given; /* 1: the caller owns the block, which does not grow */
	int32_t micro_batches;
	struct wlb_micro_batch *list; /* [micro_batches] */
	struct wlb_row_arrays *arrays;
	struct wlb_attention_tiles tiles; /* of the micro-batch that is laid out */
};

/* Returns -1 if out of memory. Zeroed rows may be freed. */
int wlb_rows_init(struct wlb_rows *rows, int32_t micro_batches, struct wlb_error *error);
void wlb_rows_free(struct wlb_rows *rows);
/* Returns the most elements that the block of a step has, with these options and these tiles. */
size_t wlb_rows_elements_max(const struct wlb_loader_options *options, int tile_rows);
/* Makes the block that of the caller, who frees it after the rows; a step that needs more elements is then an error. To
 * be called before the first wlb_rows_add. */
void wlb_rows_use_block(struct wlb_rows *rows, int32_t *host, size_t capacity);
/* Makes all micro-batches empty. */
void wlb_rows_clear(struct wlb_rows *rows);

/* Lays out a rank's share of micro-batch `number` from `shards` and fills all arrays; ids and targets get the values of
 * padding. `tile_rows` is what the device needs (wlb_ops.attention_tile_rows). Returns -1 if out of memory, or where a
 * block that was given is too small. */
int wlb_rows_add(struct wlb_rows *rows, int32_t number, const struct wlb_shards *shards, const struct wlb_share *share,
                 const struct wlb_model *model, int tile_rows, struct wlb_error *error);

/* Sets the pointers of the list to a copy of the block, and those of host memory to the block. */
void wlb_rows_set_pointers(struct wlb_rows *rows, const int32_t *block);

#endif
