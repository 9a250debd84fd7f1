#ifndef TESTS_UNIT_WORKER_REFERENCE_H
#define TESTS_UNIT_WORKER_REFERENCE_H

#include "worker/model/parameters.h"

/* Summed cross-entropy of one document of `length` inputs (tokens[length + 1]), computed in a slow and clear way. */
double reference_loss(const struct wlb_parameters *parameters, const int32_t *tokens, int length);

#endif
