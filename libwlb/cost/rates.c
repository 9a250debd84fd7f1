#include "libwlb/cost/rates.h"

#include "libwlb/cost/interpolate.h"

static struct wlb_position find_position(const double *points, int32_t count, double length)
{
	return wlb_position_find(points, (size_t)count, length, wlb_log_share);
}

static double on_columns(const struct wlb_gemm_rates *rates, size_t row, size_t depth, struct wlb_position columns)
{
	const double *line =
		&rates->flops_per_s[(row * (size_t)rates->depth_count + depth) * (size_t)rates->columns_count];
	double low = line[columns.low];
	return columns.share > 0.0 ? wlb_interpolate(low, line[columns.low + 1], columns.share) : low;
}

static double on_depth(const struct wlb_gemm_rates *rates, size_t row, struct wlb_position depth,
                       struct wlb_position columns)
{
	double low = on_columns(rates, row, depth.low, columns);
	return depth.share > 0.0 ? wlb_interpolate(low, on_columns(rates, row, depth.low + 1, columns), depth.share)
	                         : low;
}

double wlb_gemm_rate(const struct wlb_gemm_rates *rates, double rows, double depth, double columns)
{
	struct wlb_position r = find_position(rates->rows, rates->rows_count, rows);
	struct wlb_position d = find_position(rates->depth, rates->depth_count, depth);
	struct wlb_position c = find_position(rates->columns, rates->columns_count, columns);
	double low = on_depth(rates, r.low, d, c);
	return r.share > 0.0 ? wlb_interpolate(low, on_depth(rates, r.low + 1, d, c), r.share) : low;
}

/* Returns the rate at a point. Where it has fewer keys than queries, returns that of the next point that has as many.
 */
static double at_keys(const struct wlb_attention_rates *rates, size_t q, size_t k, int backward)
{
	while (rates->k_tokens[k] < rates->q_tokens[q])
		k++;
	return (backward ? rates->backward_flops_per_s : rates->forward_flops_per_s)[q * (size_t)rates->k_count + k];
}

static double on_keys(const struct wlb_attention_rates *rates, size_t q, struct wlb_position k, int backward)
{
	double low = at_keys(rates, q, k.low, backward);
	return k.share > 0.0 ? wlb_interpolate(low, at_keys(rates, q, k.low + 1, backward), k.share) : low;
}

double wlb_attention_rate(const struct wlb_attention_rates *rates, double q_tokens, double k_tokens, int backward)
{
	struct wlb_position q = find_position(rates->q_tokens, rates->q_count, q_tokens);
	struct wlb_position k = find_position(rates->k_tokens, rates->k_count, k_tokens);
	double low = on_keys(rates, q.low, k, backward);
	return q.share > 0.0 ? wlb_interpolate(low, on_keys(rates, q.low + 1, k, backward), q.share) : low;
}

static int check_axis(const char *name, const double *points, int32_t count, int32_t most, struct wlb_error *error)
{
	if (count < 1 || count > most)
		return wlb_fail(error, "%s has %d points: it must have 1 to %d", name, count, most);
	for (int32_t i = 0; i < count; i++)
		if (!(points[i] >= 1.0 && points[i] <= 0x1p40) || (i > 0 && points[i] <= points[i - 1]))
			return wlb_fail(error, "%s: point %d is %g: points must rise, from 1 to 2^40", name, i,
			                points[i]);
	return 0;
}

static int check_rate(const char *name, int32_t index, double rate, struct wlb_error *error)
{
	if (rate >= 1e3 && rate <= 1e19)
		return 0;
	return wlb_fail(error, "%s: value %d is %g: it must be FLOP/s, between 1e3 and 1e19", name, index, rate);
}

int wlb_gemm_rates_check(const struct wlb_gemm_rates *rates, struct wlb_error *error)
{
	if (rates->rows_count == 0)
		return 0;
	if (check_axis("rows", rates->rows, rates->rows_count, WLB_GEMM_ROWS, error) < 0 ||
	    check_axis("depth", rates->depth, rates->depth_count, WLB_GEMM_POINTS, error) < 0 ||
	    check_axis("columns", rates->columns, rates->columns_count, WLB_GEMM_POINTS, error) < 0)
		return -1;
	for (int32_t i = 0; i < rates->rows_count * rates->depth_count * rates->columns_count; i++)
		if (check_rate("flops_per_s", i, rates->flops_per_s[i], error) < 0)
			return -1;
	return 0;
}

int wlb_attention_rates_check(const struct wlb_attention_rates *rates, struct wlb_error *error)
{
	if (rates->q_count == 0)
		return 0;
	if (check_axis("q_tokens", rates->q_tokens, rates->q_count, WLB_ATTENTION_POINTS, error) < 0 ||
	    check_axis("k_tokens", rates->k_tokens, rates->k_count, WLB_ATTENTION_POINTS, error) < 0)
		return -1;
	double most_q = rates->q_tokens[rates->q_count - 1], most_k = rates->k_tokens[rates->k_count - 1];
	if (most_k < most_q)
		return wlb_fail(error, "the most k_tokens are %g, the most q_tokens %g: keys must be no fewer", most_k,
		                most_q);
	for (int32_t i = 0; i < rates->q_count * rates->k_count; i++) {
		if (rates->k_tokens[i % rates->k_count] < rates->q_tokens[i / rates->k_count])
			continue;
		if (check_rate("forward_flops_per_s", i, rates->forward_flops_per_s[i], error) < 0 ||
		    check_rate("backward_flops_per_s", i, rates->backward_flops_per_s[i], error) < 0)
			return -1;
	}
	return 0;
}
