/* Checks of this node and of the coordinator; each notes one or more findings. */
#ifndef COORDINATOR_WLB_DOCTOR_NODE_H
#define COORDINATOR_WLB_DOCTOR_NODE_H

#include "coordinator/wlb/doctor/finding.h"

void wlb_doctor_munge(struct wlb_doctor *doctor);
void wlb_doctor_coordinator(struct wlb_doctor *doctor);
void wlb_doctor_settings(struct wlb_doctor *doctor);
void wlb_doctor_mpi(struct wlb_doctor *doctor);
void wlb_doctor_save_dir(struct wlb_doctor *doctor);

#endif
