/* The calls of each communicator in a step, for wlb-agent (common/step_ring.h). */
#ifndef WORKER_TRAIN_STEP_TRANSFERS_H
#define WORKER_TRAIN_STEP_TRANSFERS_H

#include "common/step_ring.h"
#include "worker/parallel/groups.h"

/* Of the communicators of step_comms.h with several ranks: the first WLB_TRACE_TRANSFERS. */
struct wlb_step_transfers {
	int count;
	struct wlb_comm_use before[WLB_TRACE_TRANSFERS];
	struct wlb_trace_transfer list[WLB_TRACE_TRANSFERS];
};

/* Begins a step: its calls are those until wlb_step_transfers_end. */
void wlb_step_transfers_begin(struct wlb_step_transfers *transfers, const struct wlb_groups *groups);
/* Where `host_waits`, the step has blocked for as long as the host has waited; else wlb_step_transfers_add reports it.
 */
void wlb_step_transfers_end(struct wlb_step_transfers *transfers, const struct wlb_groups *groups, int host_waits);
/* The step has waited so long for calls of this communicator. */
void wlb_step_transfers_add(struct wlb_step_transfers *transfers, const struct wlb_comm *comm, double waited_s);

#endif
