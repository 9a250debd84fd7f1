/*
 * The id of a group of ranks, which its first rank makes and the others must have before they open a transport that
 * needs one: that of all ranks through the launcher, those of other groups through their parent. Neither needs MPI.
 * Private to worker/comm.
 */
#ifndef WORKER_COMM_GROUP_ID_H
#define WORKER_COMM_GROUP_ID_H

#include "worker/comm/comm.h"
#include "worker/comm/transport.h"

/* Collective over all ranks; sets group->id. Fails on all of them where rank 0 could make none. */
int wlb_group_id_share(const struct wlb_comm_launcher *launcher, const struct wlb_transport *transport,
                       struct wlb_transport_group *group, struct wlb_error *error);
/* Collective over `parent`, whose transport is open: ranks with equal color are a group, and group->rank is this one's
 * rank there. Sets group->id. Takes at most parent's open_limit_s. */
int wlb_group_id_split(struct wlb_comm *parent, int color, struct wlb_transport_group *group, struct wlb_error *error);

#endif
