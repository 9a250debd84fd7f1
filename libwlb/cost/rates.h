/* Checks measured rates on a grid of lengths, and interpolates between them. */
#ifndef LIBWLB_COST_RATES_H
#define LIBWLB_COST_RATES_H

#include "libwlb/wlb.h"

/* Return 0 for a grid that can be read and for one without points, -1 with the point and the rule otherwise. */
int wlb_gemm_rates_check(const struct wlb_gemm_rates *rates, struct wlb_error *error);
int wlb_attention_rates_check(const struct wlb_attention_rates *rates, struct wlb_error *error);

/* FLOP/s at a shape; the grid must have points. */
double wlb_gemm_rate(const struct wlb_gemm_rates *rates, double rows, double depth, double columns);
double wlb_attention_rate(const struct wlb_attention_rates *rates, double q_tokens, double k_tokens, int backward);

#endif
