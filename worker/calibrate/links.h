/* Times of messages between ranks, over the transport that training uses. */
#ifndef WORKER_CALIBRATE_LINKS_H
#define WORKER_CALIBRATE_LINKS_H

#include "worker/calibrate/pairs.h"
#include "worker/comm/comm.h"

/* Collective over `world`: the pairs of that kind measure at the same time all-gather, reduce-scatter and a send there
 * and back, of 4 KiB to 16 MiB, or to 1 MiB or 4 MiB where the slowest pair would need more than `limit_s`. Sets *calls
 * to this rank's times and *link to their fit (link_fit.h). Where the rank has no partner its times and *link are 0;
 * the sizes are the same on all ranks. */
int wlb_measure_link(struct wlb_device *device, struct wlb_comm *world, const struct wlb_rank_map *map,
                     enum wlb_link_kind kind, double limit_s, struct wlb_link *link, struct wlb_link_calls *calls,
                     struct wlb_error *error);

#endif
