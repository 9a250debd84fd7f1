/*
 * Which tokens of a dataset count in the loss: PREFIX.loss_mask has a byte for each token of PREFIX.bin, in the same
 * order, 1 for those that do and 0 for the others. It is used where it exists; without it all tokens count.
 */
#ifndef WORKER_DATA_LOSS_MASK_H
#define WORKER_DATA_LOSS_MASK_H

#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_loss_mask {
	char *path;
	int fd; /* -1: there is none */
	int64_t bytes;
};

/* Opens the mask of a dataset with so many tokens in its .bin. Returns 0, also where there is none; -1 where it has
 * another size; WLB_UNREADABLE (input.h) where it cannot be read now. */
int wlb_loss_mask_open(struct wlb_loss_mask *mask, const char *prefix, int64_t tokens, struct wlb_error *error);
void wlb_loss_mask_close(struct wlb_loss_mask *mask); /* one that was not opened must have fd -1 */
/* Sets targets[i] to -1 where token first + i of .bin does not count, for `count` tokens, which the file must have;
 * NULL: only counts. Returns how many count; -1 where a byte is neither 0 nor 1 or the file ends before, WLB_UNREADABLE
 * where it cannot be read now. */
int64_t wlb_loss_mask_apply(const struct wlb_loss_mask *mask, int64_t first, int64_t count, int32_t *targets,
                            struct wlb_error *error);

#endif
