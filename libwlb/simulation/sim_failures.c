/* Computes the share of wall time that is useful in a run with failures and checkpoints. */
#include "libwlb/wlb.h"

#include <math.h>

static const double day_s = 86400.0;

static int check_seconds(const char *field, double value, double least, struct wlb_error *error)
{
	if (value >= least && value <= 1e12)
		return 0;
	return wlb_fail(error, "%s is %g: it must be a number of seconds between %g and 1e12", field, value, least);
}

/* Returns the wall time of one interval of useful time and its checkpoint, divided by the useful time. Daly (2006),
 * equation 20: with failures at rate 1 / M, M e^(R/M) (e^((t + d) / M) - 1) seconds for t. */
static double wall_over_useful(const struct wlb_failures *f, double interval_s)
{
	double mtbf_s = f->mtbf_s / f->nodes;
	return mtbf_s * exp(f->restart_s / mtbf_s) * expm1((interval_s + f->checkpoint_s) / mtbf_s) / interval_s;
}

/* Returns the interval with the least wall time. The wall time falls up to it and rises after it, so that
 * golden-section search finds it. */
static double best_interval_s(const struct wlb_failures *f)
{
	const double golden = 0.6180339887498949;
	double mtbf_s = f->mtbf_s / f->nodes, low = log(mtbf_s * 1e-9), high = log(mtbf_s * 10.0);
	for (int i = 0; i < 100; i++) {
		double a = high - golden * (high - low), b = low + golden * (high - low);
		if (wall_over_useful(f, exp(a)) < wall_over_useful(f, exp(b)))
			high = b;
		else
			low = a;
	}
	return exp((low + high) / 2.0);
}

int wlb_goodput(const struct wlb_failures *f, struct wlb_goodput *goodput, struct wlb_error *error)
{
	if (f->nodes < 1)
		return wlb_fail(error, "nodes is %d: it must be at least 1", f->nodes);
	if (check_seconds("mtbf_s", f->mtbf_s, 1.0, error) < 0 ||
	    check_seconds("interval_s", f->interval_s, 0.0, error) < 0 ||
	    check_seconds("checkpoint_s", f->checkpoint_s, 0.0, error) < 0 ||
	    check_seconds("restart_s", f->restart_s, 0.0, error) < 0)
		return -1;
	if (f->interval_s == 0.0 && f->checkpoint_s == 0.0)
		return wlb_fail(error,
		                "interval_s and checkpoint_s are both 0: where checkpoints cost nothing, say how "
		                "often they are made");
	*goodput = (struct wlb_goodput){0};
	goodput->interval_s = f->interval_s > 0.0 ? f->interval_s : best_interval_s(f);
	double wall = wall_over_useful(f, goodput->interval_s);
	goodput->share = 1.0 / wall;
	goodput->failures_per_day = day_s * f->nodes / f->mtbf_s;
	goodput->lost_checkpoint = f->checkpoint_s / goodput->interval_s * goodput->share;
	goodput->lost_failures = 1.0 - goodput->share - goodput->lost_checkpoint;
	return 0;
}
