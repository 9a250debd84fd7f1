/* The newest Xid errors of each GPU of a node. */
#ifndef CHECKS_NODE_XID_LIST_H
#define CHECKS_NODE_XID_LIST_H

#include "checks/node/kernel_log.h"
#include "checks/node/xid.h"

enum { WLB_XID_GPUS_MOST = 64 };

struct wlb_xid_time {
	int number;  /* 0: there was none */
	double at_s; /* by CLOCK_MONOTONIC */
};

struct wlb_xid_gpu {
	struct wlb_pci_address gpu;
	struct wlb_xid_time newest;
	struct wlb_xid_time fault; /* the newest that says that the GPU is faulty and has not recovered since */
};

/* A list that is zeroed is empty. */
struct wlb_xid_list {
	int count;
	struct wlb_xid_gpu gpus[WLB_XID_GPUS_MOST];
};

/* Adds an error, which is newer than those in the list. Errors of a GPU for which there is no place are left out. */
void wlb_xid_list_add(struct wlb_xid_list *list, const struct wlb_xid *xid, double at_s);

/* Adds those of another list, which are newer. */
void wlb_xid_list_join(struct wlb_xid_list *list, const struct wlb_xid_list *newer);

/* Adds the errors in the log; where the log says that the driver was loaded, the list begins anew. Returns -1 with the
 * reason where the log was not read to its end; the list has what was read. */
int wlb_xid_list_read(struct wlb_xid_list *list, struct wlb_kernel_log *log, struct wlb_error *error);

#endif
