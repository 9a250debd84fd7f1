/* Checks of Slurm, the plugin and PMIx; each notes one or more findings. */
#ifndef COORDINATOR_WLB_DOCTOR_SLURM_H
#define COORDINATOR_WLB_DOCTOR_SLURM_H

#include "coordinator/wlb/doctor/finding.h"

void wlb_doctor_slurm(struct wlb_doctor *doctor);
void wlb_doctor_plugin(struct wlb_doctor *doctor);
void wlb_doctor_pmix(struct wlb_doctor *doctor);
void wlb_doctor_fence(struct wlb_doctor *doctor);
void wlb_doctor_two_nodes(struct wlb_doctor *doctor); /* needs no answer of Slurm */
void wlb_doctor_lost_nodes(struct wlb_doctor *doctor);

#endif
