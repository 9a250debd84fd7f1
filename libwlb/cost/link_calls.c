#include "libwlb/cost/link_calls.h"

#include "libwlb/cost/interpolate.h"

#include <math.h>

static int check_seconds(const char *name, const double *seconds, int32_t count, struct wlb_error *error)
{
	for (int32_t i = 0; i < count; i++)
		if (!(seconds[i] > 0.0 && seconds[i] <= 1e3))
			return wlb_fail(error, "%s: value %d is %g: it must be seconds, above 0 and at most 1000", name,
			                i, seconds[i]);
	return 0;
}

int wlb_link_calls_check(const struct wlb_link_calls *calls, struct wlb_error *error)
{
	if (calls->count < 0 || calls->count > WLB_LINK_POINTS)
		return wlb_fail(error, "bytes has %d points: it must have at most %d", calls->count, WLB_LINK_POINTS);
	for (int32_t i = 0; i < calls->count; i++)
		if (!(calls->bytes[i] >= 1.0 && calls->bytes[i] <= 0x1p40) ||
		    (i > 0 && calls->bytes[i] <= calls->bytes[i - 1]))
			return wlb_fail(error, "bytes: point %d is %g: points must rise, from 1 to 2^40", i,
			                calls->bytes[i]);
	if (check_seconds("gather_s", calls->gather_s, calls->count, error) < 0 ||
	    check_seconds("reduce_s", calls->reduce_s, calls->count, error) < 0)
		return -1;
	return check_seconds("send_s", calls->send_s, calls->count, error);
}

double wlb_link_call_s(const struct wlb_link_calls *calls, const double *seconds, double bytes)
{
	int32_t last = calls->count - 1;
	if (bytes >= calls->bytes[last])
		return seconds[last] * bytes / calls->bytes[last];
	struct wlb_position at = wlb_position_find(calls->bytes, (size_t)calls->count, bytes, wlb_log_share);
	double low = seconds[at.low];
	return at.share > 0.0 ? low * pow(seconds[at.low + 1] / low, at.share) : low;
}
