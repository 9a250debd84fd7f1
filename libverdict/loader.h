/* Verdicts of ranks that wait for their loader, and whether the loader waits for the file system. Internal. */
#ifndef LIBVERDICT_LOADER_H
#define LIBVERDICT_LOADER_H

#include "libverdict/parts.h"

void verdict_loader_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot);
void verdict_loader_find(struct wlb_verdict_detector *detector);

#endif
