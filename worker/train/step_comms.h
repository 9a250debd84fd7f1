/* The communicators whose time is counted in a step, each as communication of one part of it. */
#ifndef WORKER_TRAIN_STEP_COMMS_H
#define WORKER_TRAIN_STEP_COMMS_H

#include "worker/parallel/groups.h"
#include "worker/record/step_parts.h"

struct wlb_step_comm {
	struct wlb_comm *comm;
	enum wlb_step_part part; /* its receives are of WLB_TIME_BUBBLE */
};

/* Of a shared head the last stage has two communicators with each other stage; else there are ten. */
int wlb_step_comms_count(const struct wlb_groups *groups);
/* Returns communicator i of them, 0 <= i < count. The groups own it. */
struct wlb_step_comm wlb_step_comms_at(const struct wlb_groups *groups, int i);

#endif
