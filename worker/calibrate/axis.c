#include "worker/calibrate/axis.h"

/* Rows of the queries of one launch: half a usual micro-batch. */
enum { LAUNCH_ROWS = 2048, SEGMENTS_MAX = 16 };

int wlb_axis_fill(int least, int most, double points[WLB_AXIS_POINTS])
{
	int count = 0;
	for (int value = least; value < most; value *= value < WLB_AXIS_FINE ? 2 : 4)
		points[count++] = value;
	points[count++] = most;
	return count;
}

double wlb_axis_product_flops(int most, double scale)
{
	double points[WLB_AXIS_POINTS], sum = 0.0;
	int count = wlb_axis_fill(WLB_AXIS_SIDE_MIN, most, points);
	for (int i = 0; i < count; i++)
		sum += points[i];
	return scale * 2.0 * sum * sum * sum;
}

double wlb_causal_pairs(double q_tokens, double k_tokens)
{
	return q_tokens * (k_tokens - q_tokens) + 0.5 * q_tokens * (q_tokens + 1.0);
}

int wlb_axis_segments(double q_tokens)
{
	int segments = LAUNCH_ROWS / (int)q_tokens;
	if (segments < 1)
		return 1;
	return segments > SEGMENTS_MAX ? SEGMENTS_MAX : segments;
}

double wlb_axis_attention_flops(int most, double scale)
{
	double points[WLB_AXIS_POINTS], pairs = 0.0;
	int count = wlb_axis_fill(WLB_AXIS_TOKENS_MIN, most, points);
	for (int q = 0; q < count; q++)
		for (int k = q; k < count; k++)
			pairs += wlb_axis_segments(points[q]) * wlb_causal_pairs(points[q], points[k]);
	return scale * 3.5 * 4.0 * pairs;
}

int wlb_axis_max(double (*flops)(int most, double scale), double scale, double flops_per_s, double seconds)
{
	int most = WLB_AXIS_MAX;
	while (most > WLB_AXIS_FINE / 2 && flops(most, scale) > flops_per_s * seconds)
		most /= 2;
	return most;
}
