/* Checks of wlb-worker on this node and of the GPUs that it can compute on; each notes one finding. */
#ifndef COORDINATOR_WLB_DOCTOR_WORKER_H
#define COORDINATOR_WLB_DOCTOR_WORKER_H

#include "coordinator/wlb/doctor/finding.h"

void wlb_doctor_worker(struct wlb_doctor *doctor);
void wlb_doctor_gpus(struct wlb_doctor *doctor);

#endif
