/* How fast products and memory are on the parts of a node. */
#ifndef CHECKS_NODE_SPEED_MEASURE_H
#define CHECKS_NODE_SPEED_MEASURE_H

#include "checks/node/calibrated.h"
#include "checks/node/pieces.h"
#include "checks/node/place.h"
#include "checks/node/report.h"

struct wlb_speed_work {
	const struct wlb_places *places;
	const struct wlb_calibrated *calibrated;
	enum wlb_dtype dtype;
	double products_s, vectors_s; /* how long they are measured */
};

/* Of a place: a product of the calibration, and an addition and a copy of vectors. */
struct wlb_speed {
	struct wlb_pieces products, vectors;
};

/* Measures all of the places at the same time. Returns 1 with speeds[places->count]; 0 where not all could be measured
 * and the report says why; -1 with the reason. */
int wlb_speed_measure(const struct wlb_speed_work *work, struct wlb_speed *speeds, struct wlb_check_report *report,
                      struct wlb_error *error);

#endif
