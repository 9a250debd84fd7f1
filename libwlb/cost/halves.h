/*
 * Seconds of tensor-parallel communication that nothing hides in a layer of wlb-worker whose rows are in two halves
 * (wlb_cost_options.halved_rows): its products and collectives in the order of worker/model/layer.c, on two queues, the
 * device's and the links'. Internal.
 */
#ifndef LIBWLB_COST_HALVES_H
#define LIBWLB_COST_HALVES_H

#include "libwlb/cost/layer.h"

struct wlb_halved_rows {
	struct wlb_seconds exposed;
	double again_s; /* WLB_RECOMPUTE_FULL: what the backward pass has more */
};

/* gather_s and reduce_s are of half the rows, attention of all. */
struct wlb_halved_rows wlb_layer_halved_rows(const struct wlb_layer_cost *cost, double tokens, double gather_s,
                                             double reduce_s, struct wlb_seconds attention);

#endif
