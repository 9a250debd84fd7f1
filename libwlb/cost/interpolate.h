/* Interpolation between the points of a measured curve; internal. */
#ifndef LIBWLB_COST_INTERPOLATE_H
#define LIBWLB_COST_INTERPOLATE_H

#include <stddef.h>

/* The position of a length on an axis: between points `low` and `low + 1` at `share`, or on `low` where share is 0. */
struct wlb_position {
	size_t low;
	double share;
};

/* Returns the share of the way from `low` to `high` at which `length` is, low <= length < high. */
typedef double wlb_share(double low, double high, double length);

/* The share in logarithms. */
double wlb_log_share(double low, double high, double length);

/* Returns the position of a length on the axis points[count], ascending, count >= 1. A length outside is on the nearest
 * point. */
struct wlb_position wlb_position_find(const double *points, size_t count, double length, wlb_share *share);

/* Returns the value between those of two points. */
double wlb_interpolate(double low, double high, double share);

#endif
