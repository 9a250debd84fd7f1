/* Counts the pairs of a query and a key that it attends to; internal. */
#ifndef LIBWLB_PAIRS_H
#define LIBWLB_PAIRS_H

#include "libwlb/wlb.h"

/* Returns those of q_tokens queries, the last of k_tokens tokens of a document, in a layer with this window; 0: it has
 * none. */
double wlb_attention_pairs(double window, double q_tokens, double k_tokens);

/* The same in the mean layer of a model. */
double wlb_mean_pairs(const struct wlb_model *model, double q_tokens, double k_tokens);

#endif
