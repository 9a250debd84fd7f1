/* wlb.conf: lines "KEY = VALUE"; '#' begins a comment. */
#ifndef COMMON_CONF_H
#define COMMON_CONF_H

#include "libwlb/wlb.h"

/* WLB_CONF, else /etc/wlb/wlb.conf. */
const char *wlb_conf_path(void);

/* Calls `take` for each line of wlb.conf; it returns -1 with the reason to end the reading. A missing file is an error
 * only where WLB_CONF names it. Returns -1 with the file, the line and the reason. */
int wlb_conf_read(int (*take)(void *context, const char *key, const char *value, struct wlb_error *error),
                  void *context, struct wlb_error *error);

#endif
