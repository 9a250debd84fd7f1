/*
 * The lock of the run that saves into a directory: the file .lock in it, locked, which names the run. The system
 * releases it when the process that has it ends, in whatever way.
 *
 * Correctness does not depend on the lock, since some file systems have none and the lock of a lost node may stay: the
 * names of partial folders have the id of the start, so that a checkpoint has the shards of one start of the ranks.
 */
#ifndef WORKER_CHECKPOINT_SAVE_LOCK_H
#define WORKER_CHECKPOINT_SAVE_LOCK_H

#include "libwlb/wlb.h"

/* Who asks for the lock, and how long it waits for others. */
struct wlb_save_claim {
	const char *run; /* NULL: the run has no name */
	const char *node;
	int follows;     /* the coordinator has decided, or Slurm, that the run's attempt before this one is over */
	double former_s; /* for that attempt, whose process may still be ending, or be on a node that is lost */
	double other_s;  /* for another run: a server may keep the lock of a lost node for its lease, 90 s on NFSv4 */
};

struct wlb_save_lock {
	int fd; /* -1: it is not held */
	char path[4096];
	char owner[512]; /* what the file says while it is held */
};

#define WLB_SAVE_UNLOCKED ((struct wlb_save_lock){.fd = -1})

/* Waits for the lock of `dir`. Returns 0 with the lock; 0 without it, after a line on stderr, where the file system has
 * no locks or an attempt of the same run that is over still has it; -1 where another run has it. */
int wlb_save_lock_take(struct wlb_save_lock *lock, const char *dir, const struct wlb_save_claim *claim,
                       struct wlb_error *error);
/* For a program that is no run: does not wait. Returns 0 with the lock; EWOULDBLOCK where another process has it, which
 * `owner` names then; else the errno for which the file cannot be locked. */
int wlb_save_lock_try(struct wlb_save_lock *lock, const char *dir, const char *program, const char *node,
                      char owner[512]);
/* Returns 1 where a process has the lock of `dir`, which `owner` names then; 0 where none has, or that cannot be known.
 * Changes no file. */
int wlb_save_lock_find_owner(const char *dir, char owner[512]);
/* Returns 1 where the lock is held, or can be taken now. One whose file was removed with its directory is taken anew.
 */
int wlb_save_lock_is_held(struct wlb_save_lock *lock);
/* Removes the file where the lock is held. */
void wlb_save_lock_release(struct wlb_save_lock *lock);

#endif
