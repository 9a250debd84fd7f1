/* Finds the first of many bins in an order of their loads, while loads change one by one. */
#ifndef LIBWLB_PACKING_BIN_TREE_H
#define LIBWLB_PACKING_BIN_TREE_H

#include "libwlb/capacity.h"
#include "libwlb/wlb.h"

/* Returns 1 where load a is strictly before load b. Bins with equal loads are in the order of their numbers. */
typedef int (*wlb_load_order)(const struct wlb_load *a, const struct wlb_load *b);

int wlb_less_work(const struct wlb_load *a, const struct wlb_load *b);
int wlb_more_work(const struct wlb_load *a, const struct wlb_load *b);
int wlb_fewer_tokens(const struct wlb_load *a, const struct wlb_load *b);

/* A binary tree with a bin at each leaf; each node has the first of the bins below it. */
struct wlb_bin_tree {
	const struct wlb_load *loads;
	wlb_load_order before;
	int32_t *first;      /* of each node: the root is 1, the children of n are 2n and 2n + 1; -1: no bin is below */
	int32_t leaves;      /* a power of two; bin b is at leaf leaves + b */
	int64_t comparisons; /* since it was built */
	struct wlb_buffer buffer;
};

/* Makes space for `count` bins, at most 2^24, in the memory of the last use; zero it before the first use. Returns -1
 * if out of memory; the tree may then be freed or initialized again. A zeroed tree may be freed. */
int wlb_bin_tree_init(struct wlb_bin_tree *tree, int32_t count);
void wlb_bin_tree_free(struct wlb_bin_tree *tree);

/* Takes in `count` bins, as many as at init or fewer. The caller owns `loads`, which must outlive the tree. */
void wlb_bin_tree_build(struct wlb_bin_tree *tree, const struct wlb_load *loads, int32_t count, wlb_load_order before);

/* Puts a bin in its place after its load has changed, or after it was taken out. */
void wlb_bin_tree_put(struct wlb_bin_tree *tree, int32_t bin);
void wlb_bin_tree_take(struct wlb_bin_tree *tree, int32_t bin);

/* Returns -1 where all bins are taken out. */
int32_t wlb_bin_tree_first(const struct wlb_bin_tree *tree);

#endif
