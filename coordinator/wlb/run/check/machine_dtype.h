/* The element type in which the machine of a run was measured. */
#ifndef COORDINATOR_WLB_RUN_CHECK_MACHINE_DTYPE_H
#define COORDINATOR_WLB_RUN_CHECK_MACHINE_DTYPE_H

#include <stdbool.h>

/* Returns the value of --dtype with which `wlb check-node` can compare speeds with the machine of WLB_MACHINE or
 * wlb.conf, on GPUs or on CPUs. Returns NULL where no machine was measured on such devices, or where the devices do not
 * compute in the type of the machine. */
const char *wlb_run_machine_dtype(bool on_gpus);

#endif
