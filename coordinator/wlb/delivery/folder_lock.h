/*
 * One `wlb flush --wait` for each folder: the file flush.lock in it, locked, which holds the time when its flush ends.
 * One more may wait for it, by flush.next: each job that ends starts one. Nothing depends on it but the load: a record
 * that two processes deliver is stored once.
 */
#ifndef COORDINATOR_WLB_DELIVERY_FOLDER_LOCK_H
#define COORDINATOR_WLB_DELIVERY_FOLDER_LOCK_H

#include <stdbool.h>
#include <stdint.h>

struct wlb_folder_lock {
	int fd;      /* of flush.lock; -1: it has none */
	int next_fd; /* of flush.next; -1: it has none */
};

#define WLB_FOLDER_UNLOCKED ((struct wlb_folder_lock){.fd = -1, .next_fd = -1})

/* Returns whether a flush that goes on until `until_s` (Unix time) may deliver the folder: false where another flush
 * has it. lock->fd stays -1 where no file can be made: on a full disk, say, where delivery gives space back. A file
 * system without locks counts as locked by this one. */
bool wlb_folder_lock(const char *dir, int64_t until_s, struct wlb_folder_lock *lock);
/* Tells others that the flush which has the lock, if it has one, goes on until then. */
void wlb_folder_lock_set_until(const struct wlb_folder_lock *lock, int64_t until_s);
void wlb_folder_unlock(const char *dir, struct wlb_folder_lock *lock);

struct wlb_folder_waiter {
	int64_t waited_ms; /* for the lock */
	int wait_s;        /* as long the flush was to go on */
	bool is_last;      /* nobody delivers after it: it was started at the end of a job */
};

/* Whether a flush leaves the folder to the one that has the lock. One that is the last does so only where the other
 * still goes on for half as long as it would itself, or where another one that is the last waits already. */
bool wlb_folder_lock_is_left(const char *dir, const struct wlb_folder_waiter *waiter, struct wlb_folder_lock *lock);

#endif
