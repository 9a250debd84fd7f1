#include "worker/check_node/speed.h"

#include <math.h>
#include <stdlib.h>

#include "worker/check_node/node_load.h"
#include "worker/check_node/place_children.h"
#include "worker/check_node/processor_share.h"
#include "worker/check_node/speed_measure.h"

/* Of the time that there is: products, then vectors. */
static const double PRODUCTS = 0.6, VECTORS = 0.4;

/* Reals of a place: weights and results of products that no cache holds, and two vectors of 8 Mi (worker/calibrate). */
static const double PLACE_REALS = (2 * 12 + 2 * 8 + 4) * 1024.0 * 1024.0;

/* Where vectors are slow they are measured again, until they have been measured so many times: what other guests of the
 * host did in the first measurement may have ended. */
enum { VECTORS_MOST = 3 };

/* The slowest of the places. */
struct slowest {
	int place;
	int slow; /* how many are over the limit */
	double ratio;
};

static void take(struct slowest *slowest, int place, double ratio, double limit)
{
	slowest->slow += ratio > limit;
	if (ratio <= slowest->ratio)
		return;
	slowest->place = place;
	slowest->ratio = ratio;
}

static struct slowest slowest_products(const struct wlb_speed_work *work, const struct wlb_speed *speeds, double limit)
{
	struct slowest slowest = {0};
	for (int i = 0; i < work->places->count; i++)
		take(&slowest, i, speeds[i].products.median_s / work->calibrated->product_s, limit);
	return slowest;
}

/* The fast tenth counts, not the median: the bandwidth that other guests of the host take comes and goes from piece to
 * piece, while a slow memory is slow in each piece. */
static struct slowest slowest_vectors(const struct wlb_speed_work *work, const struct wlb_speed *speeds, double limit)
{
	struct slowest slowest = {0};
	for (int i = 0; i < work->places->count; i++)
		take(&slowest, i, speeds[i].vectors.fast_s / work->calibrated->traffic_s, limit);
	return slowest;
}

static void judge_ratio(const char *check, const char *what, const struct slowest *slowest,
                        const struct wlb_speed_work *work, double limit, struct wlb_check_report *report)
{
	int failed = slowest->slow > 0;
	struct wlb_finding *finding =
		wlb_report_add(report, check, failed ? WLB_CHECK_FAILED : WLB_CHECK_OK,
	                       "%s%s: %s take %.2f times as long as machine %s says%s", failed ? "" : "slowest ",
	                       work->places->list[slowest->place].name, what, slowest->ratio, work->calibrated->name,
	                       wlb_others_text(slowest->slow).text);
	wlb_finding_limit(finding, "%.2f times", limit);
}

/* Measures the vectors again while a place is over the limit, all places at the same time as before; of each place the
 * fastest measurement counts. Returns as wlb_speed_measure. */
static int repeat_slow_vectors(const struct wlb_speed_work *first, double limit, struct wlb_speed *speeds,
                               struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_speed_work work = *first;
	work.products_s = 0.0;
	struct wlb_speed *again = calloc((size_t)work.places->count, sizeof(*again));
	int rc = again != NULL ? 1 : wlb_fail(error, "out of memory for %d devices", work.places->count);
	for (int i = 1; rc == 1 && i < VECTORS_MOST && slowest_vectors(&work, speeds, limit).slow > 0; i++) {
		rc = wlb_speed_measure(&work, again, report, error);
		for (int place = 0; rc == 1 && place < work.places->count; place++)
			speeds[place].vectors.fast_s = fmin(speeds[place].vectors.fast_s, again[place].vectors.fast_s);
	}
	free(again);
	return rc;
}

/* Adds what the first measurement and, of vectors, its repetitions say. Returns as wlb_speed_measure. */
static int judge(const struct wlb_check_options *options, const struct wlb_speed_work *work, struct wlb_speed *speeds,
                 struct wlb_check_report *report, struct wlb_error *error)
{
	struct slowest slowest = slowest_products(work, speeds, options->slower_than);
	judge_ratio("speed", "products", &slowest, work, options->slower_than, report);
	int rc = repeat_slow_vectors(work, options->bandwidth_slower_than, speeds, report, error);
	if (rc < 1)
		return rc;
	slowest = slowest_vectors(work, speeds, options->bandwidth_slower_than);
	judge_ratio("bandwidth", "additions and copies in memory", &slowest, work, options->bandwidth_slower_than,
	            report);
	return 1;
}

/* Judges the share of its processors that each place had. */
static int judge_shares(const struct wlb_processor_share *before, const struct wlb_speed_work *work,
                        const struct wlb_speed *speeds, double least, struct wlb_check_report *report,
                        struct wlb_error *error)
{
	double *shares = calloc((size_t)work->places->count, sizeof(*shares));
	if (shares == NULL)
		return wlb_fail(error, "out of memory for %d devices", work->places->count);
	for (int i = 0; i < work->places->count; i++)
		shares[i] = (speeds[i].products.busy_s + speeds[i].vectors.busy_s) /
		            (speeds[i].products.elapsed_s + speeds[i].vectors.elapsed_s);
	wlb_processor_share_judge(before, work->places, shares, least, report);
	free(shares);
	return 1;
}

/* Returns 1 with the reason where the places together need more than half of the memory that is free. */
static int lacks_memory(const struct wlb_places *places, enum wlb_dtype dtype, struct wlb_error *why)
{
	double needed_bytes = places->count * PLACE_REALS * (double)wlb_dtype_bytes(dtype);
	double free_bytes = wlb_free_memory_bytes();
	if (places->list[0].gpu >= 0 || needed_bytes <= 0.5 * free_bytes)
		return 0;
	wlb_fail(why, "needs %.1f GB for a moment, and no more than half of the free memory, which is %.1f GB",
	         1e-9 * needed_bytes, 1e-9 * free_bytes);
	return 1;
}

static int run(const struct wlb_check_options *options, const struct wlb_speed_work *work,
               struct wlb_check_report *report, struct wlb_error *error)
{
	const struct wlb_places *places = work->places;
	struct wlb_speed *speeds = calloc((size_t)places->count, sizeof(*speeds));
	struct wlb_processor_share *before = wlb_processor_share_begin(places, error);
	int rc = speeds != NULL && before != NULL ? 0 : wlb_fail(error, "out of memory for %d devices", places->count);
	if (rc == 0)
		rc = wlb_speed_measure(work, speeds, report, error);
	if (rc == 1 && places->list[0].gpu < 0)
		rc = judge_shares(before, work, speeds, 1.0 / options->slower_than, report, error);
	if (rc == 1)
		rc = judge(options, work, speeds, report, error);
	wlb_processor_share_free(before);
	free(speeds);
	return rc < 0 ? -1 : 0;
}

int wlb_check_speed(const struct wlb_check_options *options, const struct wlb_places *places,
                    const struct wlb_calibrated *calibrated, double limit_s, struct wlb_check_report *report,
                    struct wlb_error *error)
{
	const struct wlb_speed_work work = {places, calibrated, (enum wlb_dtype)options->dtype, PRODUCTS * limit_s,
	                                    VECTORS * limit_s};
	struct wlb_error why;
	if (lacks_memory(places, work.dtype, &why)) {
		wlb_report_add(report, "speed", WLB_CHECK_NOT_CHECKED, "%.300s", why.message);
		return 0;
	}
	return run(options, &work, report, error);
}
