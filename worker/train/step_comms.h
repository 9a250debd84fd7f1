/* The communicators whose time is counted in a step, each as communication of one part of it. */
#ifndef WORKER_TRAIN_STEP_COMMS_H
#define WORKER_TRAIN_STEP_COMMS_H

#include "worker/parallel/groups.h"
#include "worker/record/step_parts.h"

struct wlb_step_comm {
	struct wlb_comm *comm;
	enum wlb_step_part part; /* its receives are of WLB_TIME_BUBBLE */
};

enum { WLB_STEP_COMMS = 10 };

/* The caller owns the communicators. */
void wlb_step_comms_list(const struct wlb_groups *groups, struct wlb_step_comm list[WLB_STEP_COMMS]);

#endif
