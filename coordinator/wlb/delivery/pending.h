/* The user's list of folders whose records still wait for the coordinator: in the user's own state folder, so that any
 * later command of the same user finds it. */
#ifndef COORDINATOR_WLB_DELIVERY_PENDING_H
#define COORDINATOR_WLB_DELIVERY_PENDING_H

#include <stdbool.h>

/* Adds or removes a folder, an absolute path. The list is bounded: the oldest entry is dropped. A write that fails is
 * not reported, since no record depends on the list. */
void wlb_pending_add(const char *dir);
void wlb_pending_remove(const char *dir);

/* The folders of the list, which wlb_strings_free releases; *count is 0 and NULL returned when there is none. */
char **wlb_pending_list(int *count);

/* Starts a separate process that delivers the listed folders, if there are any, and does not wait for it. */
void wlb_pending_deliver(void);

#endif
