/*
 * Seconds that a document takes on the device; micro-batches and replicas should have equal shares of them. They are
 * not proportional to the FLOPs of the model, since attention achieves a smaller share of the device's speed than
 * matrix products, and short documents fill its tiles only in part.
 *
 * The speeds are compiled in and not measured in the run: the assignment depends on them, and a run must be repeatable
 * bit by bit. The packer uses them too, always those of the CPU device with tp 1, on every device and layout: which
 * documents enter a step must not depend on either.
 */
#ifndef WORKER_LOAD_DOCUMENT_TIME_H
#define WORKER_LOAD_DOCUMENT_TIME_H

#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_document_time {
	struct wlb_kernel_time kernels; /* one layer forward; for adaptive sharding too */
	double layers;
	double head_token_s; /* one token through the head, forward */
};

/* Sets the times of the CPU device, with the layers split `tp` ways. */
void wlb_document_time_init(struct wlb_document_time *time, const struct wlb_model *model, int32_t tp);

/* Seconds of a document of `tokens` tokens, 1 to 2^30, forward and backward through the whole model. `time` is a struct
 * wlb_document_time. The result rises with tokens, as wlb_packer_options.work must. */
double wlb_document_s(const void *time, int64_t tokens);

#endif
