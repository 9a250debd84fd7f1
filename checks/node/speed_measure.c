#include "checks/node/speed_measure.h"

#include "checks/node/place_children.h"
#include "worker/calibrate/elementwise.h"
#include "worker/calibrate/products.h"

static double products_busy_s(struct wlb_device *device, void *context, int count, struct wlb_error *error)
{
	return wlb_products_busy_s(device, context, count, error);
}

static double traffic_busy_s(struct wlb_device *device, void *context, int count, struct wlb_error *error)
{
	return wlb_traffic_busy_s(device, context, count, error);
}

static int measure_products(struct wlb_device *device, const struct wlb_speed_work *work, struct wlb_pieces *pieces,
                            struct wlb_error *error)
{
	const struct wlb_calibrated *c = work->calibrated;
	struct wlb_products *products = wlb_products_new(device, c->rows, c->depth, c->columns, error);
	int rc = products != NULL
	                 ? wlb_pieces_measure(device, products_busy_s, products, work->products_s, pieces, error)
	                 : -1;
	wlb_products_free(device, products);
	return rc;
}

static int measure(struct wlb_device *device, const struct wlb_speed_work *work, struct wlb_speed *speed,
                   struct wlb_error *error)
{
	struct wlb_traffic *traffic = wlb_traffic_new(device, error);
	int rc = traffic != NULL ? 0 : -1;
	if (rc == 0)
		rc = measure_products(device, work, &speed->products, error);
	if (rc == 0)
		rc = wlb_pieces_measure(device, traffic_busy_s, traffic, work->vectors_s, &speed->vectors, error);
	wlb_traffic_free(device, traffic);
	return rc;
}

static int measure_place(int index, const void *context, void *result, struct wlb_error *error)
{
	const struct wlb_speed_work *work = context;
	struct wlb_device *device = wlb_place_open(&work->places->list[index], work->dtype, error);
	int rc = device != NULL ? measure(device, work, result, error) : -1;
	wlb_device_close(device);
	return wlb_place_end(&work->places->list[index], rc);
}

int wlb_speed_measure(const struct wlb_speed_work *work, struct wlb_speed *speeds, struct wlb_check_report *report,
                      struct wlb_error *error)
{
	struct wlb_children children = {0};
	int rc = wlb_place_children_run(&children, work->places, sizeof(*speeds), measure_place, work,
	                                work->products_s + work->vectors_s, error);
	if (rc == 0)
		rc = wlb_place_children_judge(&children, work->places, "speed", report, error);
	/* The others are not compared either: what uses one GPU takes from the node's bandwidth and power, too. */
	if (rc == 1 && wlb_place_children_in_use(&children, work->places, "speed", report))
		rc = 0;
	for (int i = 0; rc == 1 && i < children.count; i++)
		speeds[i] = *(const struct wlb_speed *)wlb_child_result(&children, i);
	wlb_children_free(&children);
	return rc;
}
