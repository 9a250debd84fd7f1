/*
 * The ids of groups of ranks. A group's first rank makes its id, and the other ranks must have it before they connect
 * by a transport that needs ids. The launcher carries the id of all ranks; that of a part of them goes from its first
 * rank to each of the others, in messages of MPI. Private to worker/comm.
 */
#ifndef WORKER_COMM_GROUP_ID_H
#define WORKER_COMM_GROUP_ID_H

#include "worker/comm/comm.h"
#include "worker/comm/transport.h"

/* Collective over all ranks; sets group->id. Fails on all of them where rank 0 could make none. */
int wlb_group_id_share(const struct wlb_comm_launcher *launcher, const struct wlb_transport *transport,
                       struct wlb_transport_group *group, struct wlb_error *error);
/* Collective over each of the groups: sets the ids of those that have none, all at once, within limit_s. On failure
 * *which is the place of the group that failed; -1: of no group alone. */
int wlb_group_ids_exchange(const struct wlb_transport *transport, struct wlb_transport_group *const *groups, int count,
                           double limit_s, int *which, struct wlb_error *error);

#endif
