#include "worker/calibrate/plausible.h"

static const double SHARE = 0.1;

static int check(double rate, double smaller, struct wlb_error *error)
{
	if (rate > 0.0 && rate >= SHARE * smaller)
		return 0;
	return wlb_fail(
		error,
		"%g FLOP/s, where the next smaller has %g: a larger one must have %g times that at least; measure "
		"on idle nodes",
		rate, smaller, SHARE);
}

/* The point at [r][d][c] against its three smaller neighbours. */
static int check_product(const struct wlb_gemm_rates *rates, int r, int d, int c, struct wlb_error *error)
{
	int columns = rates->columns_count, plane = rates->depth_count * columns;
	const double *rate = rates->flops_per_s + r * plane + d * columns + c;
	if (check(*rate, r > 0 ? rate[-plane] : 0.0, error) == 0 &&
	    check(*rate, d > 0 ? rate[-columns] : 0.0, error) == 0 && check(*rate, c > 0 ? rate[-1] : 0.0, error) == 0)
		return 0;
	return wlb_fail_in(error, "product of %g x %g x %g", rates->rows[r], rates->depth[d], rates->columns[c]);
}

int wlb_gemm_rates_plausible(const struct wlb_gemm_rates *rates, struct wlb_error *error)
{
	for (int r = 0; r < rates->rows_count; r++)
		for (int d = 0; d < rates->depth_count; d++)
			for (int c = 0; c < rates->columns_count; c++)
				if (check_product(rates, r, d, c, error) < 0)
					return -1;
	return 0;
}

/* A rate against those of fewer keys and of fewer queries; 0 where there are fewer keys than queries. */
static int check_attention(const struct wlb_attention_rates *rates, const double *all, int i, int j,
                           struct wlb_error *error)
{
	const double *rate = all + i * rates->k_count + j;
	if (rates->k_tokens[j] < rates->q_tokens[i])
		return 0;
	int fewer_keys = j > 0 && rates->k_tokens[j - 1] >= rates->q_tokens[i];
	if (check(*rate, fewer_keys ? rate[-1] : 0.0, error) == 0 &&
	    check(*rate, i > 0 ? rate[-rates->k_count] : 0.0, error) == 0)
		return 0;
	return wlb_fail_in(error, "attention of %g queries, %g keys", rates->q_tokens[i], rates->k_tokens[j]);
}

int wlb_attention_rates_plausible(const struct wlb_attention_rates *rates, struct wlb_error *error)
{
	for (int i = 0; i < rates->q_count; i++)
		for (int j = 0; j < rates->k_count; j++)
			if (check_attention(rates, rates->forward_flops_per_s, i, j, error) < 0 ||
			    check_attention(rates, rates->backward_flops_per_s, i, j, error) < 0)
				return -1;
	return 0;
}
