/* The matrix of delays: how long streams of messages take for each byte against others of their kind, in the last
 * steps; row the source, column the destination. Internal. */
#ifndef LIBVERDICT_DELAYS_H
#define LIBVERDICT_DELAYS_H

#include "libverdict/detector_state.h"

/* Returns -1 if out of memory; verdict_delays_free frees it in either case. */
int verdict_delays_init(struct verdict_delays *delays, const struct verdict_world *world, int32_t sets);
void verdict_delays_free(struct verdict_delays *delays);

/* Takes what the test of links has made of the newest step. */
void verdict_delays_step(struct wlb_verdict_detector *detector);

/* The row and the column of a node: by how many percent longer the streams take that its ranks send to, and receive
 * from, other nodes, against other streams of their kind, as a median. The part of these ranks in collectives is in
 * both. NaN: none was measured. */
double verdict_delays_row_percent(const struct wlb_verdict_detector *detector, int32_t node);
double verdict_delays_column_percent(const struct wlb_verdict_detector *detector, int32_t node);

#endif
