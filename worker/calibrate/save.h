/* The machine file of a calibration, and what is printed of it. */
#ifndef WORKER_CALIBRATE_SAVE_H
#define WORKER_CALIBRATE_SAVE_H

#include "worker/calibrate/calibration.h"

/* Of rank 0, before anything is measured: returns -1 where --machine or --name cannot be used, or where the file could
 * not be written. */
int wlb_calibration_check(const struct wlb_calibrate_options *options, struct wlb_error *error);

/* Of rank 0: replaces options->output by the machine file, whole or not at all, and prints what was measured. Returns
 * -1 with value, rule and remedy where the calibration is not plausible, or where the file cannot be written; the old
 * file is then unchanged. */
int wlb_calibration_save(const struct wlb_calibration *calibration, const struct wlb_launch *launch,
                         struct wlb_device *device, const struct wlb_calibrate_options *options,
                         struct wlb_error *error);

#endif
