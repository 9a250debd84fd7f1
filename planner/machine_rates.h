/* Reads the measured rates in the file of a machine. */
#ifndef PLANNER_MACHINE_RATES_H
#define PLANNER_MACHINE_RATES_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Reads "gemm" (or "gemm_curve" of earlier files: shares of the peak by tokens) and "attention" of the file's object;
 * grids that are missing or null stay empty. machine->peak_flops must have been read. */
int wlb_machine_rates_read(const json_t *root, struct wlb_machine *machine, struct wlb_error *error);

#endif
