#include "worker/data/batch_ramp.h"

#include <stdio.h>

static const int64_t most = (int64_t)1 << 40; /* exact in the double precision of Megatron-LM's division */

static void format_numbers(const struct wlb_batch_ramp *ramp, char text[WLB_BATCH_RAMP_TEXT_BYTES])
{
	snprintf(text, WLB_BATCH_RAMP_TEXT_BYTES, "%lld %lld %lld", (long long)ramp->start, (long long)ramp->increment,
	         (long long)ramp->windows);
}

void wlb_batch_ramp_format(const struct wlb_batch_ramp *ramp, char text[WLB_BATCH_RAMP_TEXT_BYTES])
{
	if (ramp->start == 0)
		snprintf(text, WLB_BATCH_RAMP_TEXT_BYTES, "none");
	else
		format_numbers(ramp, text);
}

int wlb_batch_ramp_check(const struct wlb_batch_ramp *ramp, int64_t full, struct wlb_error *error)
{
	char text[WLB_BATCH_RAMP_TEXT_BYTES];
	if (ramp->start == 0 && ramp->increment == 0 && ramp->windows == 0)
		return 0;
	format_numbers(ramp, text);
	if (ramp->start < 1 || ramp->increment < 1 || ramp->windows < 1 || ramp->windows > most)
		return wlb_fail(error, "%s: each must be at least 1, and at most %lld windows", text, (long long)most);
	if (ramp->start < full && (full - ramp->start) % ramp->increment == 0)
		return 0;
	return wlb_fail(error,
	                "%s: START must be below --global-batch-size %lld, and INCREMENT divide what is between them, "
	                "%lld: change one of the three",
	                text, (long long)full, (long long)(full - ramp->start));
}

int64_t wlb_batch_ramp_at(const struct wlb_batch_ramp *ramp, int64_t full, int64_t consumed)
{
	if (consumed > ramp->windows || ramp->start == 0)
		return full;
	double increments = (double)((full - ramp->start) / ramp->increment);
	double taken = (double)consumed / ((double)ramp->windows / increments);
	int64_t batch = ramp->start + (int64_t)taken * ramp->increment;
	return batch < full ? batch : full;
}
