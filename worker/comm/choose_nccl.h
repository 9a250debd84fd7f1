/* Whether the ranks use NCCL. Private to worker/comm. */
#ifndef WORKER_COMM_CHOOSE_NCCL_H
#define WORKER_COMM_CHOOSE_NCCL_H

#include "worker/comm/comm.h"
#include "worker/comm/mpi_group.h"

/* Collective over the group of all ranks. Returns 1 for NCCL; 0 for MPI, with the reason in `why`; -1 where NCCL is
 * asked for and a rank cannot use it, or where the collective failed. All ranks have the same result and reason. */
int wlb_choose_nccl(struct wlb_mpi_group *all, struct wlb_device *device, enum wlb_transport_choice choice, char *why,
                    size_t size, struct wlb_error *error);

#endif
