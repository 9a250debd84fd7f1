/* Checks that the measured rates are possible on an idle device. Pure functions. */
#ifndef WORKER_CALIBRATE_PLAUSIBLE_H
#define WORKER_CALIBRATE_PLAUSIBLE_H

#include "libwlb/wlb.h"

/* A larger product has at least a tenth of the rate of a smaller one: a rate below a tenth of that of the next smaller
 * product along an axis was measured while something else ran. The same holds for attention along its keys and queries.
 * Returns -1 with the value, the rule and the remedy. */
int wlb_gemm_rates_plausible(const struct wlb_gemm_rates *rates, struct wlb_error *error);
int wlb_attention_rates_plausible(const struct wlb_attention_rates *rates, struct wlb_error *error);

#endif
