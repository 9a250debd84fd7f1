/* Which file of a folder holds which rows of which tensor. */
#ifndef WLB_WEIGHTS_H
#define WLB_WEIGHTS_H

#include "worker/checkpoint/safetensors.h"

/* Rows [row_start, row_start + rows) of a tensor [global_rows, cols]. */
struct wlb_slice {
	char *name;
	int file; /* index into wlb_weights.files */
	int dimensions;
	int64_t global_rows;
	int64_t cols;
	int64_t row_start;
	int64_t rows;
};

struct wlb_weights_file {
	char *path;
	int64_t bytes;                  /* as the manifest has it; -1: nobody said */
	struct wlb_safetensors *opened; /* when first needed */
};

struct wlb_weights {
	struct wlb_weights_file *files;
	int file_count;
	struct wlb_slice *slices; /* by name, then row_start */
	int slice_count;
};

void wlb_weights_free(struct wlb_weights *weights); /* what it points to; a zeroed one is fine */

/* Appends FOLDER/NAME; its index, or -1. */
int wlb_weights_add_file(struct wlb_weights *weights, const char *folder, const char *name, int64_t bytes,
                         struct wlb_error *error);
/* Appends a slice; its name is copied. */
int wlb_weights_add_slice(struct wlb_weights *weights, const struct wlb_slice *slice, struct wlb_error *error);
/* Opens every file added and appends all their tensors. */
int wlb_weights_scan(struct wlb_weights *weights, struct wlb_error *error);
/* Sorts the slices and checks that each tensor is covered whole, once, with one shape. */
int wlb_weights_finish(struct wlb_weights *weights, struct wlb_error *error);
/* Each file is there with the size the manifest says. */
int wlb_weights_check_sizes(const struct wlb_weights *weights, struct wlb_error *error);

/* Fills the part from the slices that hold its rows. */
int wlb_weights_read(struct wlb_weights *weights, const struct wlb_tensor_part *part, struct wlb_error *error);

#endif
