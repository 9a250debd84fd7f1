#include "coordinator/wlb/history/curve.h"

#include <math.h>
#include <stddef.h>

double wlb_curve_at(const struct wlb_series *curve, double x)
{
	const struct wlb_sample *before = NULL;
	for (int i = 0; i < curve->count; i++) {
		const struct wlb_sample *point = &curve->points[i];
		if (!isfinite(point->y) || !isfinite(point->x))
			continue;
		if (point->x == x)
			return point->y;
		if (point->x > x)
			return before == NULL
			               ? NAN
			               : before->y + (point->y - before->y) * (x - before->x) / (point->x - before->x);
		before = point;
	}
	return NAN;
}

double wlb_curve_mean(const struct wlb_series *curve, double first, double last)
{
	double sum = 0;
	int count = 0;
	for (int i = 0; i < curve->count; i++) {
		const struct wlb_sample *point = &curve->points[i];
		if (isfinite(point->y) && point->x > first && point->x <= last) {
			sum += point->y;
			count++;
		}
	}
	return count > 0 ? sum / count : NAN;
}

double wlb_curve_end(const struct wlb_series *curve)
{
	for (int i = curve->count; i > 0; i--)
		if (isfinite(curve->points[i - 1].y) && isfinite(curve->points[i - 1].x))
			return curve->points[i - 1].x;
	return NAN;
}
