/* Computes the loss of a Llama in plain loops, to compare wlb-worker's with. */
#ifndef TESTS_UNIT_WORKER_REFERENCE_H
#define TESTS_UNIT_WORKER_REFERENCE_H

#include "worker/model/parameters.h"

/* Returns the summed cross-entropy of one document of `length` inputs (tokens[length + 1]). */
double reference_loss(const struct wlb_parameters *parameters, const int32_t *tokens, int length);

#endif
