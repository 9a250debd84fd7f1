/* A curve of samples: its values between them. No I/O. */
#ifndef COORDINATOR_WLB_HISTORY_CURVE_H
#define COORDINATOR_WLB_HISTORY_CURVE_H

#include "common/output/plot_series.h"

/* Returns the value of the curve at x, on the line between the two samples around it. The points are in the order of x;
 * those whose value is not finite are left out. NAN: x is before the first or after the last. */
double wlb_curve_at(const struct wlb_series *curve, double x);

/* Returns the mean of the values with first < x <= last; NAN: there are none. */
double wlb_curve_mean(const struct wlb_series *curve, double first, double last);

/* Returns the x of the last finite value; NAN: there is none. */
double wlb_curve_end(const struct wlb_series *curve);

#endif
