/* Packs by the strategy "balanced". */
#ifndef LIBWLB_PACKING_PACKER_BALANCED_H
#define LIBWLB_PACKING_PACKER_BALANCED_H

#include "libwlb/packing/packer_spans.h"

/* Sets the bin of the spans of this step; spans that wait keep bin -1. */
void wlb_packer_balanced(struct wlb_packer *packer);

#endif
