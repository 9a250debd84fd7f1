/* The tree of a pattern's text, for pattern.c. */
#ifndef FOLLOW_PATTERN_PARSE_H
#define FOLLOW_PATTERN_PARSE_H

#include <stddef.h>

#include "follow/pattern_program.h"
#include "libwlb/wlb.h"

enum {
	WLB_PATTERN_NODES_MOST = 2 * WLB_PATTERN_BYTES_MOST + 8,
	WLB_PATTERN_DEPTH_MOST = 32,
	WLB_PATTERN_REPEATS_MOST = 100,
};

enum wlb_pattern_node_kind {
	WLB_PATTERN_EMPTY,
	WLB_PATTERN_BYTE,   /* one of `set` */
	WLB_PATTERN_ASSERT, /* `op` */
	WLB_PATTERN_THEN,   /* left, then right */
	WLB_PATTERN_OR,     /* left, else right */
	WLB_PATTERN_REPEAT, /* left, `least` to `most` times */
	WLB_PATTERN_GROUP,  /* left, noted as `group` */
};

struct wlb_pattern_node {
	enum wlb_pattern_node_kind kind;
	int left, right;
	int least, most; /* most -1: any number */
	bool is_shortest;
	int group;
	enum wlb_pattern_op op;
	uint64_t set[4];
};

struct wlb_pattern_parse {
	const char *text;
	size_t at; /* of the next byte */
	int depth;
	int count;
	struct wlb_pattern_node nodes[WLB_PATTERN_NODES_MOST];
	struct wlb_pattern *pattern; /* whose groups are set */
	struct wlb_error *error;
};

/* Parses the whole text. Returns the node of the root, or -1 with the message. */
int wlb_pattern_parse(struct wlb_pattern_parse *parse);

#endif
