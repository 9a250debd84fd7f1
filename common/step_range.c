#include "common/step_range.h"

#include <stdio.h>
#include <string.h>

#include "common/number.h"

int wlb_step_range_parse(const char *text, int64_t most, struct wlb_step_range *range, struct wlb_error *error)
{
	char first[32];
	size_t bytes = strcspn(text, ":");
	snprintf(first, sizeof(first), "%.*s", (int)(bytes < sizeof(first) ? bytes : sizeof(first) - 1), text);
	if (wlb_number_parse("the first step", first, 1, INT64_MAX / 2, &range->first, error) < 0)
		return -1;
	range->last = range->first;
	if (text[bytes] == '\0')
		return 0;
	return wlb_number_parse("the last step", text + bytes + 1, range->first, range->first + most - 1, &range->last,
	                        error);
}
