/*
 * One `wlb flush --wait` of a kind for each folder: flush.lock is for users' own, which end soon, and flush.last for
 * those that the ends of jobs start, after which nobody delivers. So the latter depend on no flush that ends before
 * them. Nothing depends on a lock but the load: a record that two processes deliver is stored once.
 */
#ifndef COORDINATOR_WLB_DELIVERY_FOLDER_LOCK_H
#define COORDINATOR_WLB_DELIVERY_FOLDER_LOCK_H

#include <stdbool.h>
#include <time.h>

struct wlb_folder_lock {
	int fd; /* -1: it has none */
	bool is_last;
	struct timespec asked; /* when another one of a job's end wanted it */
};

#define WLB_FOLDER_UNLOCKED(last) ((struct wlb_folder_lock){.fd = -1, .is_last = (last)})

/* Returns whether this flush may deliver the folder: false where another one of its kind has it. lock->fd stays -1
 * where no file can be made: on a full disk, say, where delivery gives space back. A file system without locks counts
 * as locked by this one. */
bool wlb_folder_lock(const char *dir, struct wlb_folder_lock *lock);
/* Whether the flush of another job's end has found the folder locked since this was asked: it may end, and leave all
 * that it would do to the one that has the lock. */
bool wlb_folder_lock_is_asked(struct wlb_folder_lock *lock);
void wlb_folder_unlock(const char *dir, struct wlb_folder_lock *lock);

#endif
