/* The measured calls between ranks of a node; internal. */
#ifndef LIBWLB_COST_LINK_CALLS_H
#define LIBWLB_COST_LINK_CALLS_H

#include "libwlb/wlb.h"

/* Returns 0, or -1 with the value and the rule that it breaks. */
int wlb_link_calls_check(const struct wlb_link_calls *calls, struct wlb_error *error);

/* Returns the seconds of a call in which each rank sends `bytes`; `seconds` is one of the lists of `calls`, whose count
 * is above 0. */
double wlb_link_call_s(const struct wlb_link_calls *calls, const double *seconds, double bytes);

#endif
