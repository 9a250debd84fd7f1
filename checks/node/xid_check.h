/* Whether the GPUs of the node have had Xid errors that say that they are faulty. */
#ifndef CHECKS_NODE_XID_CHECK_H
#define CHECKS_NODE_XID_CHECK_H

#include "checks/node/gpu_watch.h"
#include "checks/node/report.h"

/* Adds a finding "xid 0000:3b:00" for each GPU of the list, 16 at most, failed where it has had a fault (wlb_xid_fault)
 * in the 24 hours before now_s. */
void wlb_xids_judge(const struct wlb_xid_list *list, double now_s, struct wlb_check_report *report);

/* Does that with the kernel's log and the errors that NVML has reported, and adds "xid" where there was no error since
 * the driver was loaded, or the log could not be read, which is no failure. Returns -1 with the reason where no process
 * can be started. */
int wlb_check_xids(const struct wlb_watched_xids *watched, struct wlb_check_report *report, struct wlb_error *error);

#endif
