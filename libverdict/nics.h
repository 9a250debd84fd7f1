/*
 * Which NICs are slow: the fewest that explain the slow streams of messages. In the matrix of delays (row: source
 * node, column: destination node) a NIC is the row and the column of its node, so that rows and columns are found
 * first, and only cells that none of them explains are links. Internal.
 */
#ifndef LIBVERDICT_NICS_H
#define LIBVERDICT_NICS_H

#include "libverdict/parts.h"

/* Sets `nic` of all nodes from the streams that are slow at the moment. */
void verdict_nics_find(struct wlb_verdict_detector *detector);

#endif
