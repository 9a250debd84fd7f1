#include "libwlb/packing/bin_tree.h"

enum { NO_BIN = -1 };

int wlb_less_work(const struct wlb_load *a, const struct wlb_load *b)
{
	return a->work < b->work;
}

int wlb_more_work(const struct wlb_load *a, const struct wlb_load *b)
{
	return a->work > b->work;
}

int wlb_fewer_tokens(const struct wlb_load *a, const struct wlb_load *b)
{
	return a->tokens < b->tokens;
}

int wlb_bin_tree_init(struct wlb_bin_tree *tree, int32_t count)
{
	tree->leaves = 1;
	while (tree->leaves < count)
		tree->leaves *= 2;
	tree->first = wlb_buffer_zeroed(&tree->buffer, 2 * (size_t)tree->leaves, sizeof(*tree->first));
	return tree->first == NULL ? -1 : 0;
}

void wlb_bin_tree_free(struct wlb_bin_tree *tree)
{
	wlb_buffer_free(&tree->buffer);
	*tree = (struct wlb_bin_tree){0};
}

/* Sets the bin of a node from its children. The left one has the lower numbers, so that it also has the bin of equals.
 */
static void choose(struct wlb_bin_tree *tree, int32_t node)
{
	int32_t left = tree->first[2 * node], right = tree->first[2 * node + 1];
	tree->first[node] = left;
	if (right == NO_BIN)
		return;
	tree->comparisons++;
	if (left == NO_BIN || tree->before(&tree->loads[right], &tree->loads[left]))
		tree->first[node] = right;
}

void wlb_bin_tree_build(struct wlb_bin_tree *tree, const struct wlb_load *loads, int32_t count, wlb_load_order before)
{
	tree->loads = loads;
	tree->before = before;
	tree->comparisons = 0;
	for (int32_t b = 0; b < tree->leaves; b++)
		tree->first[tree->leaves + b] = b < count ? b : NO_BIN;
	for (int32_t node = tree->leaves - 1; node >= 1; node--)
		choose(tree, node);
}

static void set_leaf(struct wlb_bin_tree *tree, int32_t bin, int32_t content)
{
	tree->first[tree->leaves + bin] = content;
	for (int32_t node = (tree->leaves + bin) / 2; node >= 1; node /= 2)
		choose(tree, node);
}

void wlb_bin_tree_put(struct wlb_bin_tree *tree, int32_t bin)
{
	set_leaf(tree, bin, bin);
}

void wlb_bin_tree_take(struct wlb_bin_tree *tree, int32_t bin)
{
	set_leaf(tree, bin, NO_BIN);
}

int32_t wlb_bin_tree_first(const struct wlb_bin_tree *tree)
{
	return tree->first[1];
}
