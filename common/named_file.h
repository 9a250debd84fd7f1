/* Opens files whose paths a run's owner has chosen. */
#ifndef COMMON_NAMED_FILE_H
#define COMMON_NAMED_FILE_H

#include "libwlb/wlb.h"

/* Opens a regular file for reading, by a path that another user may have named: root may read it, opening a device can
 * act on it, and nothing waits for a pipe. The caller closes it. Returns -1 with the reason. */
int wlb_named_file_open(const char *path, struct wlb_error *error);

#endif
