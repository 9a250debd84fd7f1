/* Xid errors that NVML reports while a program watches the GPUs. */
#ifndef CHECKS_NODE_XID_EVENTS_H
#define CHECKS_NODE_XID_EVENTS_H

#include "checks/node/nvml.h"
#include "checks/node/xid_list.h"

struct wlb_xid_events {
	struct wlb_nvml_events *set;
	int count; /* of the GPUs on which NVML reports */
	struct wlb_nvml_gpu *gpus[WLB_NVML_GPUS_MOST];
	struct wlb_pci_address addresses[WLB_NVML_GPUS_MOST];
};

/* Asks NVML to report the errors of `count` GPUs, WLB_NVML_GPUS_MOST at most, from now on. Those for which it does not
 * are left out. */
void wlb_xid_events_begin(struct wlb_xid_events *events, const struct wlb_nvml *nvml, unsigned count);

/* Adds the errors since then to the list, with the present as their time; waits 20 ms at most for one more. */
void wlb_xid_events_take(struct wlb_xid_events *events, const struct wlb_nvml *nvml, struct wlb_xid_list *list);

#endif
