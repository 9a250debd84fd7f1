#include "worker/check_node/speed.h"

#include <stdlib.h>

#include "worker/calibrate/elementwise.h"
#include "worker/calibrate/products.h"
#include "worker/check_node/node_load.h"
#include "worker/check_node/pieces.h"
#include "worker/check_node/place_children.h"
#include "worker/check_node/processor_share.h"

/* Of the time that there is: products, then vectors. */
static const double PRODUCTS = 0.6, VECTORS = 0.4;

/* Reals of a place: weights and results of products that no cache holds, and two vectors of 8 Mi (worker/calibrate). */
static const double PLACE_REALS = (2 * 12 + 2 * 8 + 4) * 1024.0 * 1024.0;

struct work {
	const struct wlb_places *places;
	const struct wlb_calibrated *calibrated;
	enum wlb_dtype dtype;
	double limit_s;
};

struct result {
	struct wlb_pieces products, vectors;
};

static double products_busy_s(struct wlb_device *device, void *context, int count, struct wlb_error *error)
{
	return wlb_products_busy_s(device, context, count, error);
}

static double traffic_busy_s(struct wlb_device *device, void *context, int count, struct wlb_error *error)
{
	return wlb_traffic_busy_s(device, context, count, error);
}

static int measure(struct wlb_device *device, const struct work *work, struct result *result, struct wlb_error *error)
{
	const struct wlb_calibrated *c = work->calibrated;
	struct wlb_products *products = wlb_products_new(device, c->rows, c->depth, c->columns, error);
	struct wlb_traffic *traffic = products != NULL ? wlb_traffic_new(device, error) : NULL;
	int rc = traffic != NULL ? 0 : -1;
	if (rc == 0)
		rc = wlb_pieces_measure(device, products_busy_s, products, PRODUCTS * work->limit_s, &result->products,
		                        error);
	if (rc == 0)
		rc = wlb_pieces_measure(device, traffic_busy_s, traffic, VECTORS * work->limit_s, &result->vectors,
		                        error);
	wlb_traffic_free(device, traffic);
	wlb_products_free(device, products);
	return rc;
}

static int measure_place(int index, const void *context, void *result, struct wlb_error *error)
{
	const struct work *work = context;
	struct wlb_device *device = wlb_place_open(&work->places->list[index], work->dtype, error);
	int rc = device != NULL ? measure(device, work, result, error) : -1;
	wlb_device_close(device);
	return rc;
}

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

static void judge_ratio(const char *check, const char *what, const struct slowest *slowest,
                        const struct wlb_places *places, const struct wlb_calibrated *calibrated, double limit,
                        struct wlb_check_report *report)
{
	int failed = slowest->slow > 0;
	struct wlb_finding *finding =
		wlb_report_add(report, check, failed ? WLB_CHECK_FAILED : WLB_CHECK_OK,
	                       "%s%s: %s take %.2f times as long as machine %s says%s", failed ? "" : "slowest ",
	                       places->list[slowest->place].name, what, slowest->ratio, calibrated->name,
	                       wlb_others_text(slowest->slow).text);
	wlb_finding_limit(finding, "%.2f times", limit);
}

/* Of vectors the fast tenth counts, not the median: the bandwidth that other guests of the host take comes and goes
 * from piece to piece, while a slow memory is slow in each piece. */
static void judge(const struct wlb_check_options *options, const struct wlb_children *children,
                  const struct wlb_places *places, const struct wlb_calibrated *calibrated,
                  struct wlb_check_report *report)
{
	struct slowest products = {0}, vectors = {0};
	for (int i = 0; i < children->count; i++) {
		const struct result *result = wlb_child_result(children, i);
		take(&products, i, result->products.median_s / calibrated->product_s, options->slower_than);
		take(&vectors, i, result->vectors.fast_s / calibrated->traffic_s, options->bandwidth_slower_than);
	}
	judge_ratio("speed", "products", &products, places, calibrated, options->slower_than, report);
	judge_ratio("bandwidth", "additions and copies in memory", &vectors, places, calibrated,
	            options->bandwidth_slower_than, report);
}

/* Sets the share of its processors that each place had. */
static void find_shares(const struct wlb_children *children, double *shares)
{
	for (int i = 0; i < children->count; i++) {
		const struct result *result = wlb_child_result(children, i);
		shares[i] = (result->products.busy_s + result->vectors.busy_s) /
		            (result->products.elapsed_s + result->vectors.elapsed_s);
	}
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

static int run(const struct wlb_check_options *options, const struct work *work, struct wlb_children *children,
               struct wlb_check_report *report, struct wlb_error *error)
{
	const struct wlb_places *places = work->places;
	double *shares = calloc((size_t)places->count, sizeof(*shares));
	struct wlb_processor_share *before = wlb_processor_share_begin(places, error);
	int rc = shares != NULL && before != NULL ? 0 : wlb_fail(error, "out of memory for %d devices", places->count);
	if (rc == 0)
		rc = wlb_place_children_run(children, places, sizeof(struct result), measure_place, work, work->limit_s,
		                            error);
	if (rc == 0)
		rc = wlb_place_children_judge(children, places, "speed", report, error);
	if (rc == 1 && places->list[0].gpu < 0) {
		find_shares(children, shares);
		wlb_processor_share_judge(before, places, shares, 1.0 / options->slower_than, report);
	}
	if (rc == 1)
		judge(options, children, places, work->calibrated, report);
	wlb_processor_share_free(before);
	free(shares);
	return rc < 0 ? -1 : 0;
}

int wlb_check_speed(const struct wlb_check_options *options, const struct wlb_places *places,
                    const struct wlb_calibrated *calibrated, double limit_s, struct wlb_check_report *report,
                    struct wlb_error *error)
{
	const struct work work = {places, calibrated, (enum wlb_dtype)options->dtype, limit_s};
	struct wlb_children children = {0};
	struct wlb_error why;
	if (lacks_memory(places, work.dtype, &why)) {
		wlb_report_add(report, "speed", WLB_CHECK_NOT_CHECKED, "%.300s", why.message);
		return 0;
	}
	int rc = run(options, &work, &children, report, error);
	wlb_children_free(&children);
	return rc;
}
