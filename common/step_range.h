/* Reads which steps a user means: "7", or "7:9" for the first and the last. */
#ifndef COMMON_STEP_RANGE_H
#define COMMON_STEP_RANGE_H

#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_step_range {
	int64_t first, last; /* 1 <= first <= last */
};

/* Reads a range of at most `most` steps. Returns -1 with text and rule. */
int wlb_step_range_parse(const char *text, int64_t most, struct wlb_step_range *range, struct wlb_error *error);

#endif
