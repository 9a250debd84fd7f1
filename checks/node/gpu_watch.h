/* Watches the GPUs of the node by NVML, in a process of its own, while they are checked. */
#ifndef CHECKS_NODE_GPU_WATCH_H
#define CHECKS_NODE_GPU_WATCH_H

#include "checks/node/children.h"
#include "checks/node/options.h"
#include "checks/node/report.h"
#include "checks/node/xid_list.h"

struct wlb_gpu_watch {
	struct wlb_children children;
	double answer_s; /* that NVML may take to begin, and to report what it saw */
};

/* The errors during the watch. */
struct wlb_watched_xids {
	int gpus; /* on which NVML reports */
	struct wlb_xid_list list;
};

/* Starts the process and waits until it watches, --answer-seconds at most; a node without NVML is no error. A GPU is to
 * have as many active links of NVLink as --nvlinks at least. Returns -1 with the reason where no process can be
 * started. wlb_gpu_watch_free in any case. */
int wlb_gpu_watch_start(struct wlb_gpu_watch *watch, const struct wlb_check_options *options, struct wlb_error *error);

/* Has the process ask for the state of the GPUs, --answer-seconds at most, and ends it. Adds the finding "nvml", and
 * returns the errors, which are valid until wlb_gpu_watch_free. */
const struct wlb_watched_xids *wlb_gpu_watch_end(struct wlb_gpu_watch *watch, struct wlb_check_report *report);

void wlb_gpu_watch_free(struct wlb_gpu_watch *watch);

#endif
