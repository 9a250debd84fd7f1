/* What the options of the loader mean for packing and dealing. */
#ifndef WORKER_LOAD_OPTIONS_H
#define WORKER_LOAD_OPTIONS_H

#include "worker/load/loader.h"

/* The packer's options: nothing in them comes from the layout, so that every layout packs the same steps. */
void wlb_loader_packer_options(const struct wlb_loader_options *options, struct wlb_packer_options *packer);

/* Tokens that one of the packer's micro-batches, of which a step has global_batch_size, holds at the most. */
int64_t wlb_loader_packed_tokens(const struct wlb_loader_options *options);

/* Micro-batches of all replicas together. */
int64_t wlb_loader_bins(const struct wlb_loader_options *options);

/* 0 when every step that can come fits, -1 with the value and the rule. */
int wlb_loader_check(const struct wlb_loader_options *options, struct wlb_error *error);

#endif
