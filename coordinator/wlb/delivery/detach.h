/* This program once more, as a process of its own. */
#ifndef COORDINATOR_WLB_DELIVERY_DETACH_H
#define COORDINATOR_WLB_DELIVERY_DETACH_H

#include <sys/types.h>

/* Starts it in a session of its own, without terminal, files or signals of ours, and forgets it. */
void wlb_detach(const char *const *argv);

/* Starts it as a child that ends when we do; it says what it says on our stderr. Its pid, or -1. */
pid_t wlb_accompany(const char *const *argv);

#endif
