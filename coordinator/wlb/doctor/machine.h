/* Checks which machine a job on this host would be planned with. */
#ifndef COORDINATOR_WLB_DOCTOR_MACHINE_H
#define COORDINATOR_WLB_DOCTOR_MACHINE_H

#include "coordinator/wlb/doctor/finding.h"

void wlb_doctor_machine(struct wlb_doctor *doctor);

#endif
