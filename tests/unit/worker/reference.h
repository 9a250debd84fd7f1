#ifndef WLB_TEST_REFERENCE_H
#define WLB_TEST_REFERENCE_H

#include "worker/model/parameters.h"

/* Summed cross-entropy of one document of `length` inputs (tokens[length + 1]), the slow and clear way. */
double reference_loss(const struct wlb_parameters *parameters, const int32_t *tokens, int length);

#endif
