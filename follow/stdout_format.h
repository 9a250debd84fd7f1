/* The formats in which trainers print their steps, for stdout_line.c. */
#ifndef FOLLOW_STDOUT_FORMAT_H
#define FOLLOW_STDOUT_FORMAT_H

#include <stdbool.h>

#include "follow/followed.h"
#include "follow/pattern.h"

enum wlb_stdout_role {
	WLB_STDOUT_RECORD,
	WLB_STDOUT_NEEDS_BAR, /* values whose step is in the bar behind them */
	WLB_STDOUT_BAR,       /* a progress bar, of training or of something else */
};

/* How the group `pairs` is divided. */
enum wlb_stdout_pairs {
	WLB_STDOUT_NO_PAIRS,
	WLB_STDOUT_BARS,   /* name: value | name: value */
	WLB_STDOUT_WORDS,  /* name: value  name: value; names without spaces */
	WLB_STDOUT_PYTHON, /* 'name': value, 'name': 'value' */
	WLB_STDOUT_EQUALS, /* name=value, name=value */
};

/* The groups of a pattern are step, pairs, total (of a bar), or the names of values. */
struct wlb_stdout_format {
	const char *trainer;
	const char *part; /* of every such line; NULL: none. It spares others the pattern */
	const char *pattern;
	const char *prefix; /* before the names of `pairs` */
	enum wlb_stdout_role role;
	enum wlb_stdout_pairs pairs;
};

enum { WLB_STDOUT_FORMATS = 10 };
extern const struct wlb_stdout_format wlb_stdout_formats[WLB_STDOUT_FORMATS]; /* the first that matches counts */

/* Adds the values of `pairs` to the record. A value that is called step or global_step is its step. */
void wlb_stdout_read_pairs(struct wlb_followed *record, const struct wlb_stdout_format *format, const char *pairs,
                           size_t length);

/* Reads a number as trainers print it: 1,234 2.5e-3 nan -inf 5.62% 5.20GiB(3.40%) 1.05M (of nanotron: K M B T P E are
 * powers of 1000). Returns whether the text is one. */
bool wlb_stdout_number(const char *text, size_t length, double *value);

#endif
