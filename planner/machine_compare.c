#include "planner/machine_compare.h"

#include <math.h>

/* The least and the most of the factors so far. */
struct range {
	double least, most;
};

static const struct range nothing = {.least = INFINITY, .most = 0.0};
static const double lengths[] = {64.0, 512.0, 4096.0};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]), HEAD_DIM = 64 };

/* Adds the speed of `now_s` relative to `before_s`, seconds of the same operation. */
static void add(struct range *range, double now_s, double before_s)
{
	range->least = fmin(range->least, before_s / now_s);
	range->most = fmax(range->most, before_s / now_s);
}

static struct range compare_products(const struct wlb_machine *now, const struct wlb_machine *before)
{
	struct range range = nothing;
	for (int i = 0; i < LENGTHS * LENGTHS * LENGTHS; i++) {
		double rows = lengths[i % LENGTHS], depth = lengths[i / LENGTHS % LENGTHS],
		       columns = lengths[i / LENGTHS / LENGTHS];
		add(&range, wlb_machine_gemm_s(now, rows, depth, columns),
		    wlb_machine_gemm_s(before, rows, depth, columns));
	}
	return range;
}

static struct range compare_attention(const struct wlb_machine *now, const struct wlb_machine *before)
{
	struct range range = nothing;
	for (int i = 0; i < 2 * LENGTHS; i++) {
		double tokens = lengths[i / 2];
		int backward = i % 2;
		add(&range, wlb_machine_attention_s(now, 1, HEAD_DIM, 0.0, tokens, tokens, backward),
		    wlb_machine_attention_s(before, 1, HEAD_DIM, 0.0, tokens, tokens, backward));
	}
	return range;
}

static double message_s(struct wlb_link link, double bytes)
{
	return link.latency_s + bytes / link.bytes_per_s;
}

static struct range compare_links(struct wlb_link now, struct wlb_link before)
{
	static const double short_bytes = 4096.0, long_bytes = 16777216.0;
	struct range range = nothing;
	add(&range, message_s(now, short_bytes), message_s(before, short_bytes));
	add(&range, message_s(now, long_bytes), message_s(before, long_bytes));
	return range;
}

json_t *wlb_machine_compare(const struct wlb_machine *now, const struct wlb_machine *before)
{
	struct range products = compare_products(now, before), attention = compare_attention(now, before),
		     memory = nothing, node = compare_links(now->node_link, before->node_link),
		     network = compare_links(wlb_machine_network(now, 0), wlb_machine_network(before, 0)),
		     leaf = compare_links(wlb_machine_network(now, 1), wlb_machine_network(before, 1));
	add(&memory, 1.0 / now->memory_bytes_per_s, 1.0 / before->memory_bytes_per_s);
	return json_pack("{s:[f, f], s:[f, f], s:[f, f], s:[f, f], s:[f, f], s:[f, f]}", "matrix_products",
	                 products.least, products.most, "attention", attention.least, attention.most, "memory",
	                 memory.least, memory.most, "node_link", node.least, node.most, "network_link", network.least,
	                 network.most, "switch_link", leaf.least, leaf.most);
}
