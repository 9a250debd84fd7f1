/* `wlb calibrate`, from the launch to the file. */
#ifndef WORKER_CALIBRATE_CALIBRATE_H
#define WORKER_CALIBRATE_CALIBRATE_H

#include "common/command.h"

/* Its main reads the options, which errors rank 0 prints for all. */
extern const struct wlb_command wlb_command_calibrate;

#endif
