/* Whether the file systems of folders keep what is written, are fast enough, and answer at all. */
#ifndef CHECKS_NODE_DISK_H
#define CHECKS_NODE_DISK_H

#include "checks/node/options.h"
#include "checks/node/report.h"

/* Writes a file to each folder at the same time, with fsync, reads it back and compares; its name is removed before the
 * first byte is written. A folder that does not answer is named after a time that follows from its limits. Returns -1
 * with the reason where no process can be started. */
int wlb_check_disk(const struct wlb_check_options *options, struct wlb_check_report *report, struct wlb_error *error);

#endif
