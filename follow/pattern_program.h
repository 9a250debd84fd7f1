/* The program of a pattern: pattern.c compiles it, pattern_match.c runs it. */
#ifndef FOLLOW_PATTERN_PROGRAM_H
#define FOLLOW_PATTERN_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

enum {
	WLB_PATTERN_BYTES_MOST = 1000,
	WLB_PATTERN_PROGRAM_MOST = 512,
	WLB_PATTERN_GROUPS_MOST = 12, /* with group 0, the whole match */
	WLB_PATTERN_GROUP_NAME_SIZE = 32,
};

enum wlb_pattern_op {
	WLB_PATTERN_SET,      /* a byte of the set, then the next instruction */
	WLB_PATTERN_SPLIT,    /* `first`, and where that does not match `second` */
	WLB_PATTERN_JUMP,     /* `first` */
	WLB_PATTERN_SAVE,     /* notes the place as bound number `first` of the groups */
	WLB_PATTERN_BEGIN,    /* only at the beginning of the line */
	WLB_PATTERN_END,      /* only at its end */
	WLB_PATTERN_BOUNDARY, /* only between a byte of \w and one that is none */
	WLB_PATTERN_MATCH,
};

struct wlb_pattern_instruction {
	enum wlb_pattern_op op;
	int first, second;
	uint64_t set[4]; /* bit b of the 256: byte b */
};

struct wlb_pattern {
	int count, groups;
	char names[WLB_PATTERN_GROUPS_MOST][WLB_PATTERN_GROUP_NAME_SIZE];
	struct wlb_pattern_instruction program[WLB_PATTERN_PROGRAM_MOST];
};

static inline bool wlb_pattern_set_has(const uint64_t set[4], unsigned char byte)
{
	return (set[byte / 64] >> (byte % 64) & 1) != 0;
}

/* Letters, digits and the underscore of ASCII. */
static inline bool wlb_pattern_is_word(unsigned char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
	       byte == '_';
}

#endif
