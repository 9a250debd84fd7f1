#include "checks/node/speed.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "checks/node/bounds.h"
#include "checks/node/place_children.h"
#include "checks/node/processor_share.h"
#include "checks/node/speed_measure.h"
#include "common/clock.h"

/* Of the time that there is: products, then vectors. */
static const double PRODUCTS = 0.6, VECTORS = 0.4;

/* Reals of a place: weights and results of products that no cache holds, and two vectors of 8 Mi (worker/calibrate). */
static const double PLACE_REALS = (2 * 12 + 2 * 8 + 4) * 1024.0 * 1024.0;

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

/* The fast tenth counts, not the median: a program of another guest on the sibling hardware thread delays many pieces,
 * but not all, while a slow core is slow in each piece. */
static struct slowest slowest_products(const struct wlb_speed_work *work, const struct wlb_speed *speeds, double limit)
{
	struct slowest slowest = {0};
	for (int i = 0; i < work->places->count; i++)
		take(&slowest, i, speeds[i].products.fast_s / work->calibrated->product_s, limit);
	return slowest;
}

/* The fastest piece counts, as in STREAM: other guests of the host may use the bandwidth during most of the others for
 * a minute, while a slow memory is slow in each piece. */
static struct slowest slowest_vectors(const struct wlb_speed_work *work, const struct wlb_speed *speeds, double limit)
{
	struct slowest slowest = {0};
	for (int i = 0; i < work->places->count; i++)
		take(&slowest, i, speeds[i].vectors.fastest_s / work->calibrated->traffic_s, limit);
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

static double share_of(const struct wlb_speed *speed)
{
	return (speed->products.busy_s + speed->vectors.busy_s) /
	       (speed->products.elapsed_s + speed->vectors.elapsed_s);
}

/* The processor time that a CPU has of the elapsed time, at least; a GPU does not share it. */
static double least_share(const struct wlb_check_options *options, const struct wlb_speed_work *work)
{
	return work->places->list[0].gpu < 0 ? 1.0 / options->slower_than : 0.0;
}

static bool is_over_a_limit(const struct wlb_check_options *options, const struct wlb_speed_work *work,
                            const struct wlb_speed *speeds)
{
	bool is_over = slowest_products(work, speeds, options->slower_than).slow > 0 ||
	               slowest_vectors(work, speeds, options->bandwidth_slower_than).slow > 0;
	for (int i = 0; i < work->places->count; i++)
		is_over = is_over || share_of(&speeds[i]) < least_share(options, work);
	return is_over;
}

/* Keeps the better of two measurements of a place. */
static void keep_best(struct wlb_speed *best, const struct wlb_speed *again)
{
	double product_s = fmin(best->products.fast_s, again->products.fast_s);
	double vector_s = fmin(best->vectors.fastest_s, again->vectors.fastest_s);
	if (share_of(again) > share_of(best))
		*best = *again;
	best->products.fast_s = product_s;
	best->vectors.fastest_s = vector_s;
}

/* Before each measurement; WLB_CHECK_PAUSES_S together. What other guests of the host do often takes longer than a
 * measurement. */
static const double pauses_s[WLB_CHECK_MEASUREMENTS] = {0, 1, 3, 9};

/* A check that is to be shorter than this has shorter pauses. */
static const double PAUSED_IN_FULL_S = 2;

static void pause_before(int measurement, const struct wlb_check_options *options)
{
	double part = fmin(options->seconds / PAUSED_IN_FULL_S, 1.0);
	wlb_clock_sleep_ms((int64_t)(1e3 * part * pauses_s[measurement]));
}

/* Measures all places again, at the same time as before, while one is over a limit: what other guests of the host did
 * in the first measurement may have ended. Returns as wlb_speed_measure. */
static int measure_again(const struct wlb_check_options *options, const struct wlb_speed_work *work,
                         struct wlb_speed *speeds, struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_speed *again = calloc((size_t)work->places->count, sizeof(*again));
	int rc = again != NULL ? 1 : wlb_fail(error, "out of memory for %d devices", work->places->count);
	for (int i = 1; rc == 1 && i < WLB_CHECK_MEASUREMENTS && is_over_a_limit(options, work, speeds); i++) {
		pause_before(i, options);
		rc = wlb_speed_measure(work, again, report, error);
		for (int place = 0; rc == 1 && place < work->places->count; place++)
			keep_best(&speeds[place], &again[place]);
	}
	free(again);
	return rc;
}

static void judge(const struct wlb_check_options *options, const struct wlb_speed_work *work,
                  const struct wlb_speed *speeds, struct wlb_check_report *report)
{
	struct slowest products = slowest_products(work, speeds, options->slower_than);
	struct slowest vectors = slowest_vectors(work, speeds, options->bandwidth_slower_than);
	judge_ratio("speed", "products", &products, work, options->slower_than, report);
	judge_ratio("bandwidth", "additions and copies in memory", &vectors, work, options->bandwidth_slower_than,
	            report);
}

/* Judges the share of its processors that each place had. Returns as wlb_speed_measure. */
static int judge_shares(const struct wlb_check_options *options, const struct wlb_processor_share *before,
                        const struct wlb_speed_work *work, const struct wlb_speed *speeds,
                        struct wlb_check_report *report, struct wlb_error *error)
{
	double *shares = calloc((size_t)work->places->count, sizeof(*shares));
	if (shares == NULL)
		return wlb_fail(error, "out of memory for %d devices", work->places->count);
	for (int i = 0; i < work->places->count; i++)
		shares[i] = share_of(&speeds[i]);
	wlb_processor_share_judge(before, work->places, shares, least_share(options, work), report);
	free(shares);
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
	if (rc == 1)
		rc = measure_again(options, work, speeds, report, error);
	if (rc == 1 && places->list[0].gpu < 0)
		rc = judge_shares(options, before, work, speeds, report, error);
	if (rc == 1)
		judge(options, work, speeds, report);
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
	if (wlb_places_lack_memory(places, PLACE_REALS * (double)wlb_dtype_bytes(work.dtype), &why)) {
		wlb_report_add(report, "speed", WLB_CHECK_NOT_CHECKED, "%.300s", why.message);
		return 0;
	}
	return run(options, &work, report, error);
}
