/* Packs by the strategies "greedy", "fixed" and "plain", with which "balanced" is compared. */
#ifndef LIBWLB_PACKING_PACKER_BASELINES_H
#define LIBWLB_PACKING_PACKER_BASELINES_H

#include "libwlb/packing/packer_spans.h"

/* Each sets the bin of the spans of this step; spans that wait keep bin -1. */
void wlb_packer_greedy(struct wlb_packer *packer);
void wlb_packer_fixed(struct wlb_packer *packer);
void wlb_packer_plain(struct wlb_packer *packer);

#endif
