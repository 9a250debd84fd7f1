/* Lengths of time as `wlb top` and `wlb stacks` print them. */
#ifndef COORDINATOR_WLB_OUTPUT_SECONDS_TEXT_H
#define COORDINATOR_WLB_OUTPUT_SECONDS_TEXT_H

#include <math.h>
#include <stdio.h>

#include "coordinator/wlb/output/time_format.h"

/* "12.3 s"; "2:04:05" from 100 s on. */
static inline void wlb_seconds_format(double time_s, char *text, size_t size)
{
	if (time_s < 100)
		snprintf(text, size, "%.1f s", time_s);
	else
		wlb_duration_format(lround(time_s), text, size);
}

#endif
