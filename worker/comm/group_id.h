/*
 * The id of a group of ranks. The group's first rank makes the id, and the other ranks must have it before they open a
 * transport that needs ids. The launcher carries the id of all ranks, the parent group that of a part of it. Neither
 * way needs MPI. Private to worker/comm.
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
