#include "worker/calibrate/link_fit.h"

int wlb_link_fit(const struct wlb_link_point *points, int count, struct wlb_link *link, struct wlb_error *error)
{
	/* Least squares of latency x a + byte_s x b = 1, where a is 1 / seconds and b bytes / seconds. */
	double aa = 0.0, ab = 0.0, bb = 0.0, sum_a = 0.0, sum_b = 0.0;
	if (count < 2)
		return wlb_fail(error, "%d sizes of messages: two are needed at least", count);
	for (int i = 0; i < count; i++) {
		double a = 1.0 / points[i].seconds, b = points[i].bytes / points[i].seconds;
		aa += a * a;
		ab += a * b;
		bb += b * b;
		sum_a += a;
		sum_b += b;
	}
	double determinant = aa * bb - ab * ab;
	double latency_s = determinant > 0.0 ? (sum_a * bb - sum_b * ab) / determinant : 0.0;
	double byte_s = determinant > 0.0 ? (sum_b * aa - sum_a * ab) / determinant : 0.0;
	if (latency_s < 0.0) {
		latency_s = 0.0;
		byte_s = sum_b / bb;
	}
	if (!(byte_s > 0.0))
		return wlb_fail(error, "messages of %g bytes take no longer than those of %g: measure on idle nodes",
		                points[count - 1].bytes, points[0].bytes);
	*link = (struct wlb_link){.bytes_per_s = 1.0 / byte_s, .latency_s = latency_s};
	return 0;
}
