/* The user's list of folders whose records still wait for the coordinator: in the user's own state folder, so that any
 * later command of the same user finds it. Clusters may share the user's home, and each counts its jobs from 1: so the
 * list names the cluster of each folder, and only commands on that cluster deliver it. */
#ifndef COORDINATOR_WLB_DELIVERY_PENDING_H
#define COORDINATOR_WLB_DELIVERY_PENDING_H

#include <stdbool.h>

/* Adds or removes a folder of this cluster, an absolute path. The list is bounded: the oldest entry is dropped. A write
 * that fails is not reported, since no record depends on the list. */
void wlb_pending_add(const char *dir);
void wlb_pending_remove(const char *dir);

/* The listed folders of this cluster, which wlb_strings_free releases. A folder whose cluster was not known when it was
 * listed is a folder of every cluster. NULL where there is no list. */
char **wlb_pending_list(int *count);

/* Starts a separate process that delivers the listed folders of this cluster, if there is a list, and does not wait for
 * it. */
void wlb_pending_deliver(void);

#endif
