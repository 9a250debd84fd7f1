/* The transport between the ranks of a launched program. */
#ifndef WORKER_TRAIN_TRANSPORT_H
#define WORKER_TRAIN_TRANSPORT_H

#include "worker/comm/comm.h"
#include "worker/launch/launch.h"

/* Collective: wlb_comm_choose_transport, where the launcher carries what NCCL begins with. Where MPI stages messages
 * of a device with memory of its own, rank 0 prints the reason, which begins with the program's name. Returns 0 or
 * -1. */
int wlb_choose_transport(struct wlb_launch *launch, struct wlb_comm *world, int choice, double limit_s,
                         const char *program, struct wlb_error *error);

#endif
