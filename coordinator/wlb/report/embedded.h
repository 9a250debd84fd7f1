/* The files of report/page/ as they are in the source tree, which the build puts into the program. */
#ifndef COORDINATOR_WLB_REPORT_EMBEDDED_H
#define COORDINATOR_WLB_REPORT_EMBEDDED_H

#include <stddef.h>

/* Not NUL-terminated. */
extern const char wlb_report_style[], wlb_report_script[];
extern const size_t wlb_report_style_bytes, wlb_report_script_bytes;

#endif
