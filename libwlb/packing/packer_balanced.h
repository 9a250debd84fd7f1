/* The strategy "balanced". */
#ifndef LIBWLB_PACKING_PACKER_BALANCED_H
#define LIBWLB_PACKING_PACKER_BALANCED_H

#include "libwlb/packing/packer_spans.h"

/* Sets the bin of the spans of this step, and leaves -1 in those that wait. */
void wlb_packer_balanced(struct wlb_packer *packer);

#endif
