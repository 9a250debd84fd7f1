#include "worker/data/split.h"

#include <math.h>
#include <stdlib.h>

int wlb_split_parse(const char *text, struct wlb_split *split, struct wlb_error *error)
{
	double part[WLB_SPLIT_PARTS] = {0}, sum = 0.0, from = 0.0;
	const char *at = text;
	char *end = NULL;
	for (int i = 0; i < WLB_SPLIT_PARTS && at != NULL; i++) {
		part[i] = strtod(at, &end);
		if (end == at || !isfinite(part[i]) || part[i] < 0.0)
			break;
		sum += part[i];
		at = *end == ',' ? end + 1 : NULL;
	}
	if (at != NULL || *end != '\0' || part[WLB_SPLIT_TRAIN] <= 0.0 || !isfinite(sum))
		return wlb_fail(error,
		                "--split %.60s: one to three numbers of 0 or more with commas between them, such as "
		                "99,1,0, the first above 0",
		                text);
	/* The sums as Megatron-LM makes them, so that the same documents are trained. */
	for (int i = 0; i < WLB_SPLIT_PARTS; i++) {
		split->from[i] = from;
		from += part[i] / sum;
		split->to[i] = from;
	}
	return 0;
}
