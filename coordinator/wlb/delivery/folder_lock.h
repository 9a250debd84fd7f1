/*
 * At most two `wlb flush --wait` deliver a folder at once. A flush that a user or `wlb run` has started holds
 * flush.lock, and ends soon. A flush that the end of a job has started holds flush.last: no flush follows, so it does
 * not wait for a flush of the first kind. The locks only save load, since a record that two processes deliver is stored
 * once.
 */
#ifndef COORDINATOR_WLB_DELIVERY_FOLDER_LOCK_H
#define COORDINATOR_WLB_DELIVERY_FOLDER_LOCK_H

#include <stdbool.h>
#include <time.h>

struct wlb_folder_lock {
	int fd; /* -1: it has none */
	bool is_last;
	struct timespec asked; /* when the flush of another job's end found the folder locked */
};

#define WLB_FOLDER_UNLOCKED(last) ((struct wlb_folder_lock){.fd = -1, .is_last = (last)})

/* Returns whether this flush may deliver the folder: false where another flush of its kind holds the lock. lock->fd
 * stays -1 where no file can be made: on a full disk, say, where delivery gives space back. A file system without locks
 * counts as locked by this one. */
bool wlb_folder_lock(const char *dir, struct wlb_folder_lock *lock);
/* Whether the flush of another job's end has found the folder locked since the last call. That flush may end, and
 * leaves its work to the flush that holds the lock. */
bool wlb_folder_lock_is_asked(struct wlb_folder_lock *lock);
void wlb_folder_unlock(const char *dir, struct wlb_folder_lock *lock);

#endif
