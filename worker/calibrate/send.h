/* A calibration for the coordinator, which keeps it by the type of node. */
#ifndef WORKER_CALIBRATE_SEND_H
#define WORKER_CALIBRATE_SEND_H

#include "worker/calibrate/options.h"
#include "worker/launch/launch.h"

/* Of rank 0: sends the machine file `text` to the coordinator where one is configured, unless --local, within 10 s, and
 * prints what became of it: the file is there in any case. */
void wlb_calibration_send(const char *text, const struct wlb_launch *launch,
                          const struct wlb_calibrate_options *options);

#endif
