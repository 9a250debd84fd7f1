/* Whether a layout can run a model on the ranks there are: what it asks of both, and what would be possible. */
#include <stdio.h>

#include "worker/parallel/groups.h"

static int ranks_on(const int *node_of, int size, int node)
{
	int ranks = 0;
	for (int rank = 0; rank < size; rank++)
		ranks += node_of[rank] == node;
	return ranks;
}

/* The first node whose ranks `tp` does not divide, or -1. */
static int torn_node(const int *node_of, int size, int tp)
{
	for (int seen = 0, node = 0, ranks; seen < size; seen += ranks, node++) {
		ranks = ranks_on(node_of, size, node);
		if (ranks % tp != 0)
			return node;
	}
	return -1;
}

static int shares_heads(const struct wlb_model *model, int tp)
{
	return model->num_attention_heads % tp == 0;
}

static int shares_key_heads(const struct wlb_model *model, int tp)
{
	return model->num_key_value_heads % tp == 0 || tp % model->num_key_value_heads == 0;
}

/* "1, 2 or 4": the values that would pass; 1 does always. */
static void list_ways(const struct wlb_model *model, const int *node_of, int size, char *text, size_t capacity)
{
	int ways[8], count = 0, most = ranks_on(node_of, size, node_of[0]);
	for (int tp = 1; tp <= most && count < 8; tp++)
		if (shares_heads(model, tp) && shares_key_heads(model, tp) && torn_node(node_of, size, tp) < 0)
			ways[count++] = tp;
	size_t length = 0;
	for (int i = 0; i < count; i++) {
		const char *between = i == 0 ? "" : i == count - 1 ? " or " : ", ";
		length += (size_t)snprintf(text + length, capacity - length, "%s%d", between, ways[i]);
	}
}

static int check_product(const struct wlb_layout *layout, const char *text, int size, struct wlb_error *error)
{
	if (layout->tp < 1 || layout->cp < 1 || layout->pp < 1 || layout->dp < 1)
		return wlb_fail(error, "layout %s: each way to split must be at least 1", text);
	/* Each may have 6 digits: more than 64 bits hold. */
	double ranks = (double)layout->tp * layout->cp * layout->pp * layout->dp;
	if (ranks != size)
		return wlb_fail(
			error,
			"layout %s: tp x cp x pp x dp is %.0f and must be the %d ranks there are; start as many, "
			"or leave dp out where tp x cp x pp divides %d",
			text, ranks, size, size);
	return 0;
}

static int check_tensor(int tp, const char *layout, const struct wlb_model *model, const int *node_of,
                        char *const *node_name, int size, struct wlb_error *error)
{
	int node = torn_node(node_of, size, tp);
	if (shares_heads(model, tp) && shares_key_heads(model, tp) && node < 0)
		return 0;
	char ways[128];
	list_ways(model, node_of, size, ways, sizeof(ways));
	if (!shares_heads(model, tp))
		return wlb_fail(error, "layout %s: tp must divide num_attention_heads, %lld; use tp=%s", layout,
		                (long long)model->num_attention_heads, ways);
	if (!shares_key_heads(model, tp))
		return wlb_fail(error,
		                "layout %s: one of tp and num_key_value_heads, %lld, must divide the other; use tp=%s",
		                layout, (long long)model->num_key_value_heads, ways);
	return wlb_fail(error, "layout %s: tp must divide the ranks of each node, and %s has %d; use tp=%s", layout,
	                node_name[node], ranks_on(node_of, size, node), ways);
}

int wlb_groups_check(const struct wlb_plan *plan, const struct wlb_model *model, const int *node_of,
                     char *const *node_name, int size, struct wlb_error *error)
{
	char layout[64];
	wlb_layout_format(&plan->layout, layout, sizeof(layout));
	if (check_product(&plan->layout, layout, size, error) < 0 ||
	    check_tensor(plan->layout.tp, layout, model, node_of, node_name, size, error) < 0)
		return -1;
	return wlb_plan_check(plan, model, error);
}
