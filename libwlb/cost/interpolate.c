#include "libwlb/cost/interpolate.h"

#include <math.h>

double wlb_log_share(double low, double high, double length)
{
	return log(length / low) / log(high / low);
}

struct wlb_position wlb_position_find(const double *points, size_t count, double length, wlb_share *share)
{
	size_t low = 0;
	if (length <= points[0])
		return (struct wlb_position){0, 0.0};
	if (length >= points[count - 1])
		return (struct wlb_position){count - 1, 0.0};
	while (points[low + 1] <= length)
		low++;
	return (struct wlb_position){low, share(points[low], points[low + 1], length)};
}

double wlb_interpolate(double low, double high, double share)
{
	return low + (high - low) * share;
}
