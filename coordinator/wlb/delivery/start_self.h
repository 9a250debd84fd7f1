/* Starts this program again as a separate process. */
#ifndef COORDINATOR_WLB_DELIVERY_START_SELF_H
#define COORDINATOR_WLB_DELIVERY_START_SELF_H

#include <sys/types.h>

/* Starts it in a session of its own, without terminal, files or signals of this process, and does not wait for it. */
void wlb_start_detached(const char *const *argv);

/* Starts it as a child that ends when this process ends; the child writes to our stderr. Returns its pid, or -1. */
pid_t wlb_start_child(const char *const *argv);

#endif
