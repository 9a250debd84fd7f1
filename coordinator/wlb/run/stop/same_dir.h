/* Whether two paths name one directory. */
#ifndef COORDINATOR_WLB_RUN_STOP_SAME_DIR_H
#define COORDINATOR_WLB_RUN_STOP_SAME_DIR_H

#include <stdbool.h>

/* Also where it does not exist yet: "ck", "ck/", "./ck" and "/home/me/ck" are one in /home/me. */
bool wlb_run_is_same_dir(const char *a, const char *b);

#endif
